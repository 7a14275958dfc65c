//! The states of a queue pair, from creation until it can send.

use std::ffi::c_int;
use std::io;

use super::super::abi::{Ah, AhAttr, GlobalRoute, QpAttr, access, mask, state};
use super::super::device::mtu_number;
use super::super::{Owned, Refused};
use super::{Endpoint, Peer, QKEY, Service};

/// Largest number of routers that a packet may pass.
const HOPS: u8 = 64;

/// Number of times that the kernel is asked for the hardware address of the other port, for RoCE. Each time it waits for a
/// second.
//= Linux drivers/infiniband/core/addr.c: rdma_addr_find_l2_eth_by_grh
const ADDRESS_TRIES: u32 = 3;

/// Path of packets to the other end, and the limits and timeouts for it.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// Largest payload of a packet, in bytes.
    pub mtu: u32,
    /// Index of this end's GID; `None` if packets are not routed.
    pub gid_index: Option<u8>,
    pub service_level: u8,
    pub traffic_class: u8,
    /// Largest number of reads that this end has in flight.
    pub reads_out: u8,
    /// Largest number of reads of the other end that this end serves at the same time.
    pub reads_in: u8,
    /// Time without an acknowledgement until a packet is sent again, as the number n of 4.096 us x 2^n.
    pub timeout: u8,
    /// Number of times that a packet is sent again.
    pub retries: u8,
    /// Number of times that a request is repeated if the other
    /// end has not posted a receive request; 7 is without limit.
    pub rnr_retries: u8,
    /// Time until the other end repeats such a request, as a number in a table of the InfiniBand specification.
    pub rnr_timer: u8,
}

impl Endpoint {
    fn modify(&mut self, at: usize, mut attr: QpAttr, what: c_int) -> Result<(), Refused> {
        // SAFETY: the queue pair exists, and the structure is as large as in the library.
        let result = unsafe {
            let modify = self.region.device.library.ibv_modify_qp;
            modify(self.pairs[at].qp.as_ptr(), &raw mut attr, what)
        };
        Refused::check("ibv_modify_qp", result)
    }

    pub(super) fn initialize(&mut self, at: usize) -> Result<(), Refused> {
        let of_service = match self.plan.service {
            Service::Ud => mask::QKEY,
            Service::Rc | Service::Uc => mask::ACCESS_FLAGS,
        };
        let attr = QpAttr {
            qp_state: state::INIT,
            port_num: self.plan.port,
            qkey: QKEY,
            qp_access_flags: match self.plan.service {
                Service::Rc => access::REMOTE_WRITE | access::REMOTE_READ | access::REMOTE_ATOMIC,
                Service::Uc => access::REMOTE_WRITE,
                Service::Ud => 0,
            },
            ..QpAttr::default()
        };
        self.modify(at, attr, mask::STATE | mask::PKEY_INDEX | mask::PORT | of_service)
    }

    /// Connects a queue pair to one of the other end. `first_packet` is the number of the first packet from this end.
    ///
    /// # Panics
    /// If there is no queue pair with this number. This applies to all methods with a queue pair's number.
    pub fn connect(
        &mut self,
        at: usize,
        peer: Peer,
        route: &Route,
        first_packet: u32,
    ) -> Result<(), Refused> {
        let pair = &mut self.pairs[at];
        pair.peer = peer;
        // Prepared requests contain the old address, so they are dropped.
        pair.prepared = None;
        let mut address = AhAttr {
            dlid: peer.lid,
            sl: route.service_level,
            port_num: self.plan.port,
            ..AhAttr::default()
        };
        if let Some(sgid_index) = route.gid_index {
            address.is_global = 1;
            address.grh = GlobalRoute {
                dgid: peer.gid,
                flow_label: 0,
                sgid_index,
                hop_limit: HOPS,
                traffic_class: route.traffic_class,
            };
        }
        self.start_receiving(at, address, route)?;
        self.start_sending(at, route, first_packet)?;
        if self.plan.service == Service::Ud {
            self.pairs[at].address = Some(self.handle(address)?);
        }
        Ok(())
    }

    /// Changes the queue pair to the state in which it can receive.
    fn start_receiving(
        &mut self,
        at: usize,
        address: AhAttr,
        route: &Route,
    ) -> Result<(), Refused> {
        let peer = self.pairs[at].peer;
        let attr = QpAttr {
            qp_state: state::RTR,
            path_mtu: mtu_number(route.mtu),
            dest_qp_num: peer.number,
            rq_psn: peer.first_packet,
            max_dest_rd_atomic: route.reads_in,
            min_rnr_timer: route.rnr_timer,
            ah_attr: address,
            ..QpAttr::default()
        };
        let of_service = match self.plan.service {
            Service::Rc => {
                mask::AV
                    | mask::PATH_MTU
                    | mask::DEST_QPN
                    | mask::RQ_PSN
                    | mask::MAX_DEST_RD_ATOMIC
                    | mask::MIN_RNR_TIMER
            }
            Service::Uc => mask::AV | mask::PATH_MTU | mask::DEST_QPN | mask::RQ_PSN,
            Service::Ud => 0,
        };
        // A busy host may answer later than the kernel waits.
        for _ in 1..ADDRESS_TRIES {
            match self.modify(at, attr, mask::STATE | of_service) {
                Err(refused) if refused.source.kind() == io::ErrorKind::TimedOut => {}
                result => return result,
            }
        }
        self.modify(at, attr, mask::STATE | of_service)
    }

    /// Changes the queue pair to the state in which it can send.
    fn start_sending(
        &mut self,
        at: usize,
        route: &Route,
        first_packet: u32,
    ) -> Result<(), Refused> {
        let attr = QpAttr {
            qp_state: state::RTS,
            sq_psn: first_packet,
            timeout: route.timeout,
            retry_cnt: route.retries,
            rnr_retry: route.rnr_retries,
            max_rd_atomic: route.reads_out,
            ..QpAttr::default()
        };
        let of_service = match self.plan.service {
            Service::Rc => {
                mask::TIMEOUT | mask::RETRY_CNT | mask::RNR_RETRY | mask::MAX_QP_RD_ATOMIC
            }
            Service::Uc | Service::Ud => 0,
        };
        self.modify(at, attr, mask::STATE | mask::SQ_PSN | of_service)
    }

    /// Makes the address handle to which datagrams are sent.
    fn handle(&self, mut address: AhAttr) -> Result<Owned<Ah>, Refused> {
        let library = self.region.device.library;
        // SAFETY: the protection domain exists, and the structure is as large as in the library.
        unsafe {
            let made = (library.ibv_create_ah)(self.region.pd.as_ptr(), &raw mut address);
            Owned::take("ibv_create_ah", made, library.ibv_destroy_ah)
        }
    }
}
