//! The states of a queue pair, from its making until it sends.

use std::ffi::c_int;

use super::super::abi::{Ah, AhAttr, GlobalRoute, QpAttr, access, mask, state};
use super::super::device::mtu_number;
use super::super::{Owned, Refused};
use super::{Endpoint, Peer, QKEY, Service};

/// Hops that a routed packet may take.
const HOPS: u8 = 64;

/// How packets get to the other end.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// Most payload in a packet, in bytes.
    pub mtu: u32,
    /// Index of this end's GID; `None` if packets are not routed.
    pub gid_index: Option<u8>,
    pub service_level: u8,
    pub traffic_class: u8,
    /// Reads that this end has in flight at most.
    pub reads_out: u8,
    /// Reads of the other end that this end answers at a time.
    pub reads_in: u8,
    /// Time without an acknowledgement before a packet is sent again: 4.096 us x 2^n.
    pub timeout: u8,
    /// How often it is sent again.
    pub retries: u8,
    /// How often a request is repeated if the other end has no receive request posted; 7 is without an end.
    pub rnr_retries: u8,
    /// Time until the other end repeats it, as the number of the InfiniBand specification's table.
    pub rnr_timer: u8,
}

impl Endpoint {
    fn modify(&mut self, at: usize, mut attr: QpAttr, what: c_int) -> Result<(), Refused> {
        // SAFETY: the queue pair exists, and the structure is as large as the library's.
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

    /// Connects a queue pair to one of the other end's. `first_packet` is the number of this end's first packet.
    ///
    /// # Panics
    /// If there is no queue pair with this number, as all methods do that take one.
    pub fn connect(
        &mut self,
        at: usize,
        peer: Peer,
        route: &Route,
        first_packet: u32,
    ) -> Result<(), Refused> {
        let pair = &mut self.pairs[at];
        pair.peer = peer;
        // They name the address that is replaced.
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

    /// Makes the queue pair ready to receive.
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
        self.modify(at, attr, mask::STATE | of_service)
    }

    /// Makes the queue pair ready to send.
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

    /// Makes the address of datagrams.
    fn handle(&self, mut address: AhAttr) -> Result<Owned<Ah>, Refused> {
        let library = self.region.device.library;
        // SAFETY: the domain exists, and the structure is as large as the library's.
        unsafe {
            let made = (library.ibv_create_ah)(self.region.pd.as_ptr(), &raw mut address);
            Owned::take("ibv_create_ah", made, library.ibv_destroy_ah)
        }
    }
}
