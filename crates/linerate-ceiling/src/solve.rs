//! Shares the resources of a path among its groups of streams, max-min fair.
//!
//! The rates of all streams rise together until a resource is used up; the streams that need it keep their rate and
//! the others rise further. With one group and no shared resource the result is the minimum over the stages.

use super::{Bounds, Demand, End, Path, Resource, StreamGroup};
use linerate_plan::path::Direction;

/// Bits in a byte: rates are computed in bytes per second, goodput is given in bits per second.
const BITS: f64 = 8.0;

/// The most goodput that a path allows to its groups of streams in the requested directions.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// Goodput of all groups together, in bits per second.
    pub goodput: Bounds,
    /// Goodput of each requested direction, bits per second, in the requested order.
    pub each: Vec<Bounds>,
    /// Names of the resources that limit first: one, or two if the limits at the low and the high end of the
    /// interval differ.
    pub binding: Vec<String>,
    /// The next limit, if the resources in `binding` had no limit.
    pub next: Option<Next>,
}

/// The limit that remains once the first one is removed.
#[derive(Debug, Clone, PartialEq)]
pub struct Next {
    /// Names of the resources that limit next.
    pub binding: Vec<String>,
    /// Goodput with the next limit, in bits per second.
    pub goodput: Bounds,
}

/// The highest goodput that the resources of one name allow in a direction if nothing else limits it.
#[derive(Debug, Clone, PartialEq)]
pub struct Ceiling<'a> {
    /// The resource that has the ceiling.
    pub resource: &'a Resource,
    /// Highest goodput in bits per second.
    pub goodput: Bounds,
    /// The formula of the goodput, with its numbers.
    pub formula: &'a str,
}

/// Rates at one end of the intervals, low or high.
struct Shared {
    /// Goodput of each group, all its streams together, bytes per second.
    rates: Vec<f64>,
    /// Index of the resource that was used up first.
    first: usize,
}

impl Path {
    /// Shares the path among the groups in the directions `ways`; the others are idle. `None` if no resource limits
    /// a group: then its rate is unknown, which does not mean that it is high.
    pub fn solve(&self, ways: &[Direction]) -> Option<Solution> {
        let (goodput, each, binding) = self.both_ends(ways, |_| true)?;
        let others = |r: &Resource| !binding.contains(&r.name);
        let next =
            self.both_ends(ways, others).map(|(goodput, _, binding)| Next { binding, goodput });
        Some(Solution { goodput, each, binding, next })
    }

    /// The ceiling of each name of resources in one direction, in the order of the path.
    pub fn ceilings(&self, way: Direction) -> Vec<Ceiling<'_>> {
        let mut names: Vec<&str> = Vec::new();
        for resource in &self.resources {
            if !names.contains(&resource.name.as_str()) {
                names.push(&resource.name);
            }
        }
        let alone = |name: &&str| self.alone(name, way);
        names.iter().filter_map(alone).collect()
    }

    fn alone(&self, name: &str, way: Direction) -> Option<Ceiling<'_>> {
        let [low, high] = End::ALL.map(|end| self.share(&[way], end, |r| r.name == name));
        let (low, high) = (low?, high?);
        let resource = self.resources.get(high.first)?;
        let demands = self.groups.iter().filter(|f| f.direction == way);
        let demand = demands.flat_map(|f| &f.demands).find(|d| d.resource == high.first)?;
        let total = |s: &Shared| s.rates.iter().sum::<f64>() * BITS;
        Some(Ceiling {
            resource,
            goodput: Bounds::new(total(&low), total(&high)),
            formula: &demand.formula,
        })
    }

    /// Goodput of all groups together, goodput of each direction, and names of the limits at the low and the high end.
    fn both_ends(
        &self,
        ways: &[Direction],
        counts: impl Fn(&Resource) -> bool,
    ) -> Option<(Bounds, Vec<Bounds>, Vec<String>)> {
        let low = self.share(ways, End::Low, &counts)?;
        let high = self.share(ways, End::High, &counts)?;
        let sum = |s: &Shared, way: Option<Direction>| {
            let groups = self.groups.iter().zip(&s.rates);
            let ours = groups.filter(|(f, _)| way.is_none_or(|w| w == f.direction));
            ours.map(|(_, rate)| rate).sum::<f64>() * BITS
        };
        let of = |way| Bounds::new(sum(&low, way), sum(&high, way));
        let mut binding = vec![self.resources[low.first].name.clone()];
        let other = &self.resources[high.first].name;
        if !binding.contains(other) {
            binding.push(other.clone());
        }
        let each = ways.iter().map(|way| of(Some(*way))).collect();
        Some((of(None), each, binding))
    }

    /// Shares the resources that `counts` selects among the groups of `ways`. `None` if a group has no limit, or if
    /// there are no streams.
    fn share(
        &self,
        ways: &[Direction],
        end: End,
        counts: impl Fn(&Resource) -> bool,
    ) -> Option<Shared> {
        let streams = |f: &StreamGroup| {
            let requested = ways.contains(&f.direction);
            if requested { f.streams.at(end) } else { 0.0 }
        };
        let mut rising: Vec<bool> = self.groups.iter().map(|f| streams(f) > 0.0).collect();
        let mut left: Vec<f64> = self.resources.iter().map(|r| r.capacity.at(end)).collect();
        let mut rates = vec![0.0; self.groups.len()];
        let mut first = None;
        while rising.contains(&true) {
            let mut requested = vec![0.0; self.resources.len()];
            for (group, _) in self.groups.iter().zip(&rising).filter(|(_, up)| **up) {
                for (resource, cost) in costs(group, end) {
                    if let Some(sum) = requested.get_mut(resource) {
                        *sum += streams(group) * cost;
                    }
                }
            }
            let levels = (0..requested.len())
                .filter(|r| requested[*r] > 0.0 && counts(&self.resources[*r]))
                .map(|r| (r, left[r] / requested[r]));
            let (tight, level) = levels.min_by(|a, b| a.1.total_cmp(&b.1))?;
            first = first.or(Some(tight));
            for (i, group) in self.groups.iter().enumerate() {
                if !rising[i] || !costs(group, end).any(|(r, cost)| r == tight && cost > 0.0) {
                    continue;
                }
                rising[i] = false;
                rates[i] = streams(group) * level;
                for (resource, cost) in costs(group, end) {
                    if let Some(rest) = left.get_mut(resource) {
                        *rest = (*rest - rates[i] * cost).max(0.0);
                    }
                }
            }
        }
        first.map(|first| Shared { rates, first })
    }
}

/// Index of each resource that `group` needs, and the units of its capacity that one payload byte uses.
fn costs(group: &StreamGroup, end: End) -> impl Iterator<Item = (usize, f64)> {
    let per = move |size: Bounds| size.at(end).max(1.0);
    group.demands.iter().map(move |d: &Demand| {
        let at = end.of_cost();
        let cost = d.cost.per_byte.at(at)
            + d.cost.per_packet.at(at) / per(group.packet)
            + d.cost.per_operation.at(at) / per(group.operation);
        (d.resource, cost)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Cost;
    use super::*;
    use linerate_plan::path::{Place, Stage};

    const FORWARD: &[Direction] = &[Direction::Forward];

    fn resource(name: &str, capacity: Bounds) -> Resource {
        Resource {
            name: name.to_owned(),
            stage: Stage::Net,
            side: Place::Path,
            capacity,
            inputs: Vec::new(),
        }
    }

    fn group(direction: Direction, streams: f64, costs: &[(usize, Bounds)]) -> StreamGroup {
        StreamGroup {
            direction,
            streams: Bounds::exact(streams),
            packet: Bounds::exact(1000.0),
            operation: Bounds::exact(4096.0),
            demands: costs
                .iter()
                .map(|(resource, per_byte)| Demand {
                    resource: *resource,
                    cost: Cost::bytes(*per_byte),
                    formula: String::new(),
                })
                .collect(),
        }
    }

    fn one() -> Bounds {
        Bounds::exact(1.0)
    }

    #[test]
    fn one_group_gets_the_minimum_and_the_next_is_named() {
        let path = Path {
            resources: vec![
                resource("a", Bounds::exact(30.0)),
                resource("b", Bounds::exact(10.0)),
                resource("c", Bounds::new(15.0, 20.0)),
            ],
            groups: vec![group(Direction::Forward, 1.0, &[(0, one()), (1, one()), (2, one())])],
        };
        let solved = path.solve(FORWARD).unwrap();
        assert_eq!(solved.goodput, Bounds::exact(80.0));
        assert_eq!(solved.binding, ["b"]);
        let next = solved.next.unwrap();
        assert_eq!((next.binding, next.goodput), (vec!["c".to_owned()], Bounds::new(120.0, 160.0)));
    }

    #[test]
    fn what_both_directions_share_is_given_once() {
        let both =
            |costs: &[(usize, Bounds)]| Direction::ALL.map(|d| group(d, 1.0, costs)).to_vec();
        let path = Path {
            resources: vec![resource("bus", Bounds::exact(100.0))],
            groups: both(&[(0, one())]),
        };
        assert_eq!(path.solve(FORWARD).unwrap().goodput, Bounds::exact(800.0));
        let shared = path.solve(&Direction::ALL).unwrap();
        assert_eq!(shared.goodput, Bounds::exact(800.0));
        assert_eq!(shared.each, [Bounds::exact(400.0); 2]);
    }

    #[test]
    fn what_one_group_cannot_use_is_left_to_the_other() {
        let path = Path {
            resources: vec![
                resource("slow", Bounds::exact(2.0)),
                resource("bus", Bounds::exact(10.0)),
            ],
            groups: vec![
                group(Direction::Forward, 1.0, &[(0, one()), (1, one())]),
                group(Direction::Reverse, 1.0, &[(1, one())]),
            ],
        };
        let solved = path.solve(&Direction::ALL).unwrap();
        assert_eq!(solved.each, [Bounds::exact(16.0), Bounds::exact(64.0)]);
    }

    #[test]
    fn packets_and_operations_count_too() {
        let mut one_group = group(Direction::Forward, 1.0, &[(0, Bounds::default())]);
        one_group.demands[0].cost.per_packet = one();
        let mut path = Path {
            resources: vec![resource("packets", Bounds::exact(5.0))],
            groups: vec![one_group],
        };
        assert_eq!(path.solve(FORWARD).unwrap().goodput, Bounds::exact(40_000.0));
        path.groups[0].demands[0].cost = Cost { per_operation: one(), ..Cost::default() };
        let operations = path.solve(FORWARD).unwrap().goodput;
        assert_eq!(operations, Bounds::exact(5.0 * 4096.0 * 8.0));
    }

    #[test]
    fn without_a_limit_there_is_no_ceiling() {
        let path = Path {
            resources: vec![resource("a", one())],
            groups: vec![group(Direction::Forward, 1.0, &[])],
        };
        assert_eq!(path.solve(FORWARD), None);
        assert_eq!(path.solve(&[Direction::Reverse]), None);
        assert!(path.ceilings(Direction::Forward).is_empty());
    }

    prop_compose! {
        fn bounds()(a in 0.1..1e3f64, b in 0.1..1e3f64) -> Bounds {
            Bounds::new(a, b)
        }
    }

    prop_compose! {
        fn paths()(capacities in prop::collection::vec(bounds(), 1..6))(
            groups in prop::collection::vec(
                (any::<bool>(), 1u32..9, prop::collection::btree_map(0..capacities.len(), bounds(), 1..5)),
                1..6,
            ),
            capacities in Just(capacities),
        ) -> Path {
            let names = ["a", "b", "c", "d", "e", "f"];
            Path {
                resources: names.iter().zip(&capacities).map(|(n, c)| resource(n, *c)).collect(),
                groups: groups.iter().map(|(forward, streams, costs)| {
                    let way = if *forward { Direction::Forward } else { Direction::Reverse };
                    let costs: Vec<_> = costs.iter().map(|(r, c)| (*r, *c)).collect();
                    group(way, f64::from(*streams), &costs)
                }).collect(),
            }
        }
    }

    fn used(path: &Path, shared: &Shared, end: End, resource: usize) -> f64 {
        let groups = path.groups.iter().zip(&shared.rates);
        groups
            .flat_map(|(f, rate)| costs(f, end).map(move |(r, cost)| (r, cost * rate)))
            .filter(|(r, _)| *r == resource)
            .map(|(_, used)| used)
            .sum()
    }

    proptest! {
        #[test]
        fn nothing_gives_more_than_it_has_and_every_flow_meets_its_limit(path in paths()) {
            for end in End::ALL {
                let shared = path.share(&Direction::ALL, end, |_| true).unwrap();
                let full = |r: usize| {
                    let capacity = path.resources[r].capacity.at(end);
                    used(&path, &shared, end, r) >= capacity * (1.0 - 1e-9)
                };
                for (r, resource) in path.resources.iter().enumerate() {
                    let capacity = resource.capacity.at(end);
                    prop_assert!(used(&path, &shared, end, r) <= capacity * (1.0 + 1e-9));
                }
                for f in &path.groups {
                    prop_assert!(f.demands.iter().any(|d| full(d.resource)));
                }
            }
        }

        #[test]
        fn raising_what_does_not_bind_changes_nothing(path in paths(), more in 1.0..100f64) {
            let before = path.share(&Direction::ALL, End::High, |_| true).unwrap();
            for r in 0..path.resources.len() {
                let capacity = path.resources[r].capacity;
                if used(&path, &before, End::High, r) >= capacity.high() * (1.0 - 1e-6) {
                    continue;
                }
                let mut raised = path.clone();
                raised.resources[r].capacity = Bounds::new(capacity.low(), capacity.high() * more);
                let after = raised.share(&Direction::ALL, End::High, |_| true).unwrap();
                for (a, b) in before.rates.iter().zip(&after.rates) {
                    prop_assert!((a - b).abs() <= a.max(*b) * 1e-9);
                }
            }
        }

        #[test]
        fn a_path_in_a_row_is_never_above_a_stage(
            stages in prop::collection::vec((bounds(), bounds()), 1..6), streams in 1u32..9,
        ) {
            let names = ["a", "b", "c", "d", "e", "f"];
            let costs: Vec<_> = stages.iter().enumerate().map(|(i, (_, cost))| (i, *cost)).collect();
            let path = Path {
                resources: names.iter().zip(&stages).map(|(n, (c, _))| resource(n, *c)).collect(),
                groups: vec![group(Direction::Forward, f64::from(streams), &costs)],
            };
            let whole = path.solve(FORWARD).unwrap().goodput;
            let ceilings = path.ceilings(Direction::Forward);
            prop_assert_eq!(ceilings.len(), stages.len());
            for ceiling in ceilings {
                prop_assert!(whole.low() <= ceiling.goodput.low() * (1.0 + 1e-9));
                prop_assert!(whole.high() <= ceiling.goodput.high() * (1.0 + 1e-9));
            }
        }

        #[test]
        fn no_input_makes_it_fail(
            numbers in prop::collection::vec((any::<f64>(), any::<f64>()), 6),
            index in 0usize..4,
        ) {
            let b = |i: usize| Bounds::new(numbers[i].0, numbers[i].1);
            let mut odd = group(Direction::Forward, 1.0, &[(index, b(0)), (0, b(1))]);
            odd.streams = b(2);
            odd.packet = b(3);
            odd.operation = b(4);
            odd.demands[0].cost.per_packet = b(0);
            odd.demands[0].cost.per_operation = b(1);
            let path = Path {
                resources: vec![resource("a", b(5)), resource("b", b(2))],
                groups: vec![odd],
            };
            if let Some(solved) = path.solve(&Direction::ALL) {
                prop_assert!(solved.goodput.high().is_finite());
                prop_assert!(solved.goodput.low() >= 0.0);
            }
        }
    }
}
