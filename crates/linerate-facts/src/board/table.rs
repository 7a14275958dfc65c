//! The tables of boards and chips. Every row names its source.

/// A family of RDMA chips.
#[derive(Debug, PartialEq, Eq)]
pub struct Family {
    /// Name under which cards with the chip are sold.
    pub name: &'static str,
    /// PCI device ids of the chip, including those of virtual functions.
    pub devices: &'static [u16],
    /// Whether some boards with the chip support InfiniBand.
    pub has_infiniband: bool,
    /// The newest firmware version that a source names for boards of the chip's maker; empty if none is known.
    pub firmware: &'static str,
    /// How the link layer of a port is switched between InfiniBand and Ethernet.
    pub switched: Switched,
}

/// How the link layer of a port is switched between InfiniBand and Ethernet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switched {
    /// By a file of the driver (`mlx4_port1`), until the driver is loaded again.
    Driver,
    /// By a setting in the firmware (`LINK_TYPE_P1`), from the next boot on.
    Firmware,
}

/// A board of an RDMA card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Board {
    /// Id of the board in the firmware (PSID), as sysfs writes it in `board_id`.
    pub id: &'static str,
    /// Part number that the seller gives the board.
    pub part: &'static str,
    /// Company that sold the board under a name of its own; empty if it was the maker of the chip.
    pub sold_by: &'static str,
    /// Index of the chip's family in [`FAMILIES`].
    pub(super) family: usize,
    /// Number of ports that the board has.
    pub ports: u32,
    /// InfiniBand speeds that the ports support.
    pub infiniband: &'static str,
    /// Ethernet speeds that the ports support. Every board of the table supports both link layers (VPI).
    pub ethernet: &'static str,
}

const CX2: usize = 0;
const CX3: usize = 1;
const CX3_PRO: usize = 2;
const CX4: usize = 3;
const CX5: usize = 4;
const CX5_EX: usize = 5;
const CX6: usize = 6;
const CX7: usize = 7;

/// All known families of chips.
//= torvalds/linux, drivers/net/ethernet/mellanox/mlx4/main.c, mlx4_pci_table, and mlx5/core/main.c, mlx5_core_pci_table:
//= names and device ids. The ids of mlx4's Ethernet boards (MT26448 and others) are left out: they have no InfiniBand.
pub(super) static FAMILIES: &[Family] = &[
    Family {
        name: "ConnectX-2",
        //= torvalds/linux, mlx4_pci_table: 0x673c is "MT26428 ConnectX VPI PCIe 2.0 5GT/s - IB QDR / 10GigE"
        devices: &[0x673c],
        has_infiniband: true,
        firmware: "",
        switched: Switched::Driver,
    },
    Family {
        name: "ConnectX-3",
        devices: &[0x1003, 0x1004],
        has_infiniband: true,
        //= NVIDIA Firmware Tools (MFT) Documentation v4.32.0, Supported Adapter Cards Firmware Versions
        firmware: "2.42.5000",
        switched: Switched::Driver,
    },
    Family {
        name: "ConnectX-3 Pro",
        devices: &[0x1007],
        has_infiniband: true,
        //= NVIDIA Firmware Tools (MFT) Documentation v4.32.0, Supported Adapter Cards Firmware Versions
        firmware: "2.42.5000",
        switched: Switched::Driver,
    },
    Family {
        name: "ConnectX-4",
        devices: &[0x1013, 0x1014],
        has_infiniband: true,
        //= NVIDIA Firmware Tools (MFT) Documentation v4.35.0, Supported Adapter Cards Firmware Versions
        firmware: "12.28.4706",
        switched: Switched::Firmware,
    },
    Family {
        name: "ConnectX-5",
        devices: &[0x1017, 0x1018],
        has_infiniband: true,
        //= NVIDIA Firmware Tools (MFT) Documentation v4.35.0, Supported Adapter Cards Firmware Versions
        firmware: "16.35.8008",
        switched: Switched::Firmware,
    },
    Family {
        name: "ConnectX-5 Ex",
        devices: &[0x1019, 0x101a],
        has_infiniband: true,
        //= NVIDIA Firmware Tools (MFT) Documentation v4.32.0: "ConnectX-5 / ConnectX-5 Ex 16.35.4030"
        firmware: "16.35.4030",
        switched: Switched::Firmware,
    },
    Family {
        name: "ConnectX-6",
        devices: &[0x101b, 0x101c],
        has_infiniband: true,
        // The maker maintains several branches side by side, so that no version is the newest.
        firmware: "",
        switched: Switched::Firmware,
    },
    Family {
        name: "ConnectX-7",
        devices: &[0x1021],
        has_infiniband: true,
        // No newest version is known, as for ConnectX-6.
        firmware: "",
        switched: Switched::Firmware,
    },
    //= NVIDIA MLNX_OFED Documentation v5.6-1.0.3.3, Release Notes: these three have speeds of Ethernet only
    Family {
        name: "ConnectX-4 Lx",
        devices: &[0x1015, 0x1016],
        has_infiniband: false,
        firmware: "",
        switched: Switched::Firmware,
    },
    Family {
        name: "ConnectX-6 Dx",
        devices: &[0x101d],
        has_infiniband: false,
        firmware: "",
        switched: Switched::Firmware,
    },
    Family {
        name: "ConnectX-6 Lx",
        devices: &[0x101f],
        has_infiniband: false,
        firmware: "",
        switched: Switched::Firmware,
    },
];

const QDR: &str = "up to QDR (40 Gb/s)";
const FDR: &str = "up to FDR (56 Gb/s)";
const EDR: &str = "up to EDR (100 Gb/s)";
const HDR100: &str = "up to HDR100 (100 Gb/s)";
const HDR: &str = "up to HDR (200 Gb/s)";

/// Makes the row of a board that the chip's maker sold.
const fn board(
    id: &'static str,
    part: &'static str,
    family: usize,
    ports: u32,
    infiniband: &'static str,
    ethernet: &'static str,
) -> Board {
    Board { id, part, sold_by: "", family, ports, infiniband, ethernet }
}

const fn sold_by(name: &'static str, board: Board) -> Board {
    Board { sold_by: name, ..board }
}

/// All known boards.
pub static BOARDS: &[Board] = &[
    //= mlxfwmanager: "MHQH19B-XTR_A1-A3, ConnectX-2 VPI adapter card; single-port 40Gb/s QSFP", MT_0D90110009; the speed of
    //= Ethernet from torvalds/linux, mlx4_pci_table, 0x673c
    board("MT_0D90110009", "MHQH19B-XTR", CX2, 1, QDR, "10 Gb/s"),
    //= illumos, fwflash/plugins/hdrs/MELLANOX.h: "MHQH29B-XTR", "MT_0D80110009", "Osprey CX-2"; speeds as above, ports
    //= from the User Manual of ConnectX-2 VPI Single and Dual Port QSFP cards, Rev 1.6
    board("MT_0D80110009", "MHQH29B-XTR", CX2, 2, QDR, "10 Gb/s"),
    //= Oracle, Solaris port of libibverbs: "MHQH29B-XTR", MT_0D80120009; ibv_devinfo: MT_0D80120009, vendor_part_id
    //= 26428 (0x673c), phys_port_cnt 2; speeds and Ethernet as above
    board("MT_0D80120009", "MHQH29B-XTR", CX2, 2, QDR, "10 Gb/s"),
    //= mlxup: "MCX354A-FCB_A2-A5, ConnectX-3 VPI adapter card; dual-port QSFP; FDR IB (56Gb/s) and 40GigE", MT_1090120019
    board("MT_1090120019", "MCX354A-FCBT", CX3, 2, FDR, "10 and 40 Gb/s"),
    //= mlxfwmanager: "MCX354A-QCB_Ax, ConnectX-3 VPI adapter card; dual-port QSFP; QDR IB (40Gb/s) and 10GigE",
    //= MT_1090110018
    board("MT_1090110018", "MCX354A-QCBT", CX3, 2, QDR, "10 Gb/s"),
    //= mlxfwmanager: "MCX353A-FCB_A2-A5, ConnectX-3 VPI adapter card; single-port QSFP; FDR IB (56Gb/s) and 40GigE",
    //= MT_1100120019
    board("MT_1100120019", "MCX353A-FCBT", CX3, 1, FDR, "10 and 40 Gb/s"),
    //= mlxfwmanager: "MCX353A-QCA_A1-A2, ConnectX-3 VPI adapter card; single-port QSFP; QDR IB (40Gb/s) and 10GigE",
    //= MT_1120120018 (forums.servethehome.com, "MCX353A-QCA_A1-A2 won't accept firmware update")
    board("MT_1120120018", "MCX353A-QCAT", CX3, 1, QDR, "10 Gb/s"),
    //= a firmware dump of ISL1090110018 names the profile cx3-1_MCX354A_qdr.prs, "dual-port QSFP; QDR IB (40Gb/s)"; Dell's
    //= firmware guide of Isilon: "Mellanox CX-3 IB/10GbE 2.42.5000+ISL1090110018"
    sold_by("Isilon", board("ISL1090110018", "MCX354A-QCBT", CX3, 2, QDR, "10 Gb/s")),
    //= mlxup: "01T7NW, ConnectX-3 VPI adapter; dual-port QSFP; FDR IB (56Gb/s) and 40GbE; Dell PowerEdge",
    //= DEL1090001019
    sold_by("Dell", board("DEL1090001019", "01T7NW", CX3, 2, FDR, "10 and 40 Gb/s")),
    //= mstflint: the image fw-ConnectX3Pro-rel-2_42_5000-MCX354A-FCC_Ax has the PSID MT_1090111019; speeds from its name
    //= (F: FDR and 40 Gb/s, as MCX354A-FCB)
    board("MT_1090111019", "MCX354A-FCCT", CX3_PRO, 2, FDR, "10 and 40 Gb/s"),
    //= mlxfwmanager: "764284-B21_Ax, HP InfiniBand FDR/Ethernet 10Gb/40Gb 2-port 544+QSFP Adapter", HP_1370110017
    sold_by("HP", board("HP_1370110017", "764284-B21", CX3_PRO, 2, FDR, "10 and 40 Gb/s")),
    //= mlxfwmanager: "764285-B21_Ax, HP InfiniBand FDR/Ethernet 10Gb/40Gb 2-port 544+FLR-QSFP Adapter", HP_1380110017
    sold_by("HP", board("HP_1380110017", "764285-B21", CX3_PRO, 2, FDR, "10 and 40 Gb/s")),
    //= mlxfwmanager: "ConnectX-4 VPI adapter card; FDR IB (56Gb/s) and 40GbE; dual-port QSFP28; PCIe3.0 x8", MT_2170110021,
    //= image MCX454A-FCA
    board("MT_2170110021", "MCX454A-FCAT", CX4, 2, FDR, "up to 40 Gb/s"),
    //= mlxfwmanager: "MCX455A-ECA_Ax, ConnectX-4 VPI adapter card; EDR IB (100Gb/s) and 100GbE; single-port QSFP28",
    //= MT_2180110032
    board("MT_2180110032", "MCX455A-ECAT", CX4, 1, EDR, "up to 100 Gb/s"),
    //= flint: MT_2190110032 takes the image fw-ConnectX4-rel-12_28_2006-MCX456A-ECA_Ax; MCX456A is the board of MCX455A
    //= with two ports
    board("MT_2190110032", "MCX456A-ECAT", CX4, 2, EDR, "up to 100 Gb/s"),
    //= mlxfwmanager: "06W1HY_0JJN39_Ax, Mellanox ConnectX-4 Single Port EDR PCIE Adapter LP", DEL2180110032
    //= (forums.servethehome.com, "Lenovo Connectx-4 card flash to Mellanox"); the speed of Ethernet from the User
    //= Manual of ConnectX-4 VPI Single and Dual QSFP28 Port cards for Dell PowerEdge, Rev 1.3
    sold_by("Dell", board("DEL2180110032", "06W1HY", CX4, 1, EDR, "up to 100 Gb/s")),
    //= flint and mlxconfig of one card: LNV2180110032, "00KH925_Ax, Mellanox ConnectX-4 EDR IB VPI Single-port x16
    //= PCIe 3.0 HCA"; ethtool of it: 100000baseCR4/Full
    sold_by("Lenovo", board("LNV2180110032", "00KH925", CX4, 1, EDR, "up to 100 Gb/s")),
    //= lshca: "MCX556A-ECAT, PSID MT_0000000008"; mlxconfig: "MCX556A-ECA_Ax, ConnectX-5 VPI adapter card; EDR IB (100Gb/s)
    //= and 100GbE; dual-port QSFP28"
    board("MT_0000000008", "MCX556A-ECAT", CX5, 2, EDR, "up to 100 Gb/s"),
    //= a nicmem artifact: "MCX555A-ECA_Ax_Bx, PSID MT_0000000010"; mstconfig: "MCX555A-ECA_Ax_Bx, ConnectX-5 VPI
    //= adapter card; EDR IB (100Gb/s) and 100GbE; single-port QSFP28"
    board("MT_0000000010", "MCX555A-ECAT", CX5, 1, EDR, "up to 100 Gb/s"),
    //= lshca: "MCX556A-EDAT, PSID MT_0000000009", MT4121, two functions; mlxconfig: "MCX556A-EDA_Ax_Bx, ConnectX-5 Ex
    //= VPI adapter card; EDR IB (100Gb/s) and 100GbE; dual-port QSFP28"
    board("MT_0000000009", "MCX556A-EDAT", CX5_EX, 2, EDR, "up to 100 Gb/s"),
    //= mlxfwmanager: "MCX653105A-HDA_Ax, ConnectX-6 VPI adapter card; HDR IB (200Gb/s) and 200GbE; single-port QSFP56",
    //= MT_0000000223
    board("MT_0000000223", "MCX653105A-HDAT", CX6, 1, HDR, "up to 200 Gb/s"),
    //= flint: "P06250-B21_Ax, HPE InfiniBand HDR100/Ethernet 100Gb 1-port 940QSFP56 x16 Adapter", HPE0000000035
    //= (forums.servethehome.com, "Cross-flash HPE ConnectX-6 VPI")
    sold_by("HPE", board("HPE0000000035", "P06250-B21", CX6, 1, HDR100, "up to 100 Gb/s")),
    //= lshca: "MCX653105A-ECAT, PSID MT_0000000222"; mlxconfig: "MCX653105A-ECA_Ax, ConnectX-6 VPI adapter card;
    //= 100Gb/s (HDR100; EDR IB and 100GbE); single-port QSFP56"
    board("MT_0000000222", "MCX653105A-ECAT", CX6, 1, HDR100, "up to 100 Gb/s"),
    //= mlxfwmanager, XML in NVIDIA's tests of libmlx: psid "MT_0000000224", partNumber "MCX653106A-ECA_Ax";
    //= ibdev2netdev: "MCX653106A-ECAT, ConnectX-6 VPI adapter card, 100Gb/s (HDR100, EDR IB and 100GbE), dual-port
    //= QSFP56"
    board("MT_0000000224", "MCX653106A-ECAT", CX6, 2, HDR100, "up to 100 Gb/s"),
    //= lshca: "MCX654106A-HCAT, PSID MT_0000000228"; mlxconfig: "MCX654106A-HCA_Ax, ConnectX-6 VPI adapter card; HDR
    //= IB (200Gb/s) and 200GbE; dual-port QSFP56; Socket Direct 2x PCIe3.0 x16"
    board("MT_0000000228", "MCX654106A-HCAT", CX6, 2, HDR, "up to 200 Gb/s"),
    //= mlxfwmanager: "MCX653105A-EFA_Ax, ConnectX-6 VPI adapter card; 100Gb/s (HDR100; EDR IB and 100GbE); single-port
    //= QSFP56; PCIe3.0/4.0 Socket Direct 2x8 in a row", MT_0000000237
    board("MT_0000000237", "MCX653105A-EFAT", CX6, 1, HDR100, "up to 100 Gb/s"),
    //= mlxup: "MCX75310AAS-NEA_Ax, NVIDIA ConnectX-7 HHHL Adapter card; 400GbE / NDR IB (default mode); Single-port OSFP",
    //= MT_0000000838
    board("MT_0000000838", "MCX75310AAS-NEAT", CX7, 1, "up to NDR (400 Gb/s)", "up to 400 Gb/s"),
];
