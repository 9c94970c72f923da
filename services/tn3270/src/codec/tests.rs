use inhost_base::Random;

use super::*;

/// The code of GA23-0059, figure "Control Character I/O Codes".
#[test]
fn six_bits_are_graphic() {
    let row = |from: u8| (from..from + 8).map(six_bit).collect::<Vec<_>>();
    assert_eq!(row(0), [0x40, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7]);
    assert_eq!(row(8), [0xc8, 0xc9, 0x4a, 0x4b, 0x4c, 0x4d, 0x4e, 0x4f]);
    assert_eq!(row(32), [0x60, 0x61, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7]);
    assert_eq!(row(48), [0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7]);
    assert_eq!(six_bit(0x10), 0x50);
}

#[test]
fn addresses_go_both_ways() {
    assert_eq!(encode_address(80, 1920), [0xc1, 0x50]);
    assert_eq!(encode_address(1919, 1920), [0x5d, 0x7f]);
    for address in 0..1 << 12 {
        assert_eq!(decode_address(encode_address(address, 1920)), address);
    }
    for address in 0..1 << 14 {
        assert_eq!(decode_address(encode_address(address, 1 << 14)), address);
    }
}

#[test]
fn aids_and_commands_go_both_ways() {
    for octet in 0..=255 {
        if let Some(aid) = Aid::from_octet(octet) {
            assert_eq!(aid.octet(), octet);
        }
        if let Some(command) = Command::from_octet(octet) {
            assert_eq!(Command::from_octet(command.octet()), Some(command));
        }
        let control = WriteControl::from_octet(octet);
        assert_eq!(WriteControl::from_octet(control.octet()).octet(), control.octet());
        assert_eq!(FieldAttribute::from_octet(octet).octet(), six_bit(octet & 0x3d));
    }
    assert_eq!([Aid::Pf(1), Aid::Pf(24), Aid::Pf(25), Aid::Pf(0)].map(Aid::octet), [0xf1, 0x4c, 0x60, 0x60]);
    let restore = WriteControl::RESET | WriteControl::RESTORE_KEYBOARD | WriteControl::RESET_MODIFIED;
    assert_eq!((restore.octet(), WriteControl::RESTORE_KEYBOARD.octet()), (0xc3, 0x02));
}

/// Each order that the writer makes is the one that is read.
#[test]
fn orders_go_both_ways() {
    let mut writer =
        StreamWriter::new(Command::EraseWriteAlternate, WriteControl::RESET | WriteControl::ALARM, 3564);
    let attribute = FieldAttribute::UNPROTECTED.display(Display::Intensified).modified(true);
    let attributes =
        Attributes { highlight: Highlight::REVERSE, foreground: Color::RED, ..Attributes::default() };
    writer.set_address(3563);
    writer.start_field(attribute);
    writer.start_field_with(attribute, attributes);
    writer.text(b"\xc8\x89\x00\x11");
    writer.insert_cursor();
    writer.program_tab();
    writer.repeat_to(0, 0x60);
    writer.repeat_graphic_to(7, 0xa2);
    writer.erase_unprotected_to(9);
    writer.graphic(0xc5);
    writer.set_attribute(AttributePair::new(AttributeType::Foreground, 0xf1));
    writer.modify_field(&[AttributePair::new(AttributeType::Background, 0xf2)]);
    let record = writer.finish();
    assert_eq!(record[..2], [0x7e, 0xc4]);
    let orders: Vec<Order> = Orders::new(&record[2..]).map(Result::unwrap).collect();
    assert_eq!(orders[..2], [Order::SetAddress(3563), Order::StartField(attribute)]);
    let Order::StartFieldExtended(pairs) = orders[2] else { panic!() };
    let pairs: Vec<_> = pairs.iter().map(|pair| (pair.kind, pair.value)).collect();
    assert_eq!(pairs, [(0xc0, 0xc9), (0x42, 0xf2), (0x41, 0xf2)]);
    assert_eq!(orders[3..5], [Order::Text(b"\xc8\x89\x00"), Order::Control(0x3f)]);
    assert_eq!(orders[5..7], [Order::InsertCursor, Order::ProgramTab]);
    assert_eq!(
        orders[7..11],
        [
            Order::Repeat { to: 0, character: 0x60, graphic: false },
            Order::Repeat { to: 7, character: 0xa2, graphic: true },
            Order::EraseUnprotected { to: 9 },
            Order::Graphic(0xc5),
        ]
    );
    assert!(matches!(orders[11..], [Order::SetAttribute(_), Order::ModifyField(_)]));
}

#[test]
fn an_order_that_ends_early_is_an_error_and_the_last() {
    for data in [
        &b"\x1d"[..],
        b"\x11\x40",
        b"\x29\x02\xc0\x40",
        b"\x28\x41",
        b"\x3c\x40\x40",
        b"\x3c\x40\x40\x08",
        b"\x08",
        b"\x12",
        b"\x2c",
    ] {
        let orders: Vec<_> = Orders::new(data).collect();
        assert_eq!(orders, [Err(DataError::Truncated)], "{data:02x?}");
    }
    assert_eq!(Orders::new(b"\x01").collect::<Vec<_>>(), [Ok(Order::Unknown(1))]);
}

#[test]
fn code_pages_are_permutations() {
    for page in CodePage::ALL {
        assert_eq!(page.to_string().parse(), Ok(page));
        for octet in 0..=255 {
            assert_eq!(page.octet(page.character(octet)), Some(octet), "{page:?} {octet:02x}");
            assert!(!page.shown(octet).is_control());
        }
    }
    assert_eq!(CodePage::Cp1140.octet('€'), Some(0x9f));
    assert_eq!(CodePage::Cp1140.octet('¤'), None);
    assert_eq!(CodePage::Cp037.encode("€"), [0x3f]);
    assert_eq!(CodePage::Cp273.encode("Ä{"), [0x4a, 0x43]);
    assert_eq!("IBM-1047".parse(), Ok(CodePage::Cp1047));
    assert!("4711".parse::<CodePage>().is_err());
}

#[test]
fn query_replies_go_both_ways() {
    let replies = [
        QueryReply::Summary(vec![0x80, 0x81]),
        QueryReply::UsableArea {
            columns: 132,
            rows: 27,
            buffer_positions: 3564,
            cell_width: 9,
            cell_height: 12,
        },
        QueryReply::AlphanumericPartitions { partitions: 0, positions: 1920 },
        QueryReply::CharacterSets {
            has_graphic_escape: true,
            sets: vec![
                CharacterSet { store: 0, flags: 0x10, local: 0, graphic_set: Some(0x2b9_0025) },
                CharacterSet { store: 1, flags: 0, local: 0xf1, graphic_set: Some(0x3c3_0136) },
            ],
        },
        QueryReply::Color(vec![(0, 0xf4), (0xf1, 0xf1)]),
        QueryReply::Highlighting(vec![(0, 0xf0)]),
        QueryReply::ReplyModes(vec![0, 1, 2]),
        QueryReply::Ddm { inbound_bytes: 4096, outbound_bytes: 2048 },
        QueryReply::ImplicitPartition { default: (80, 24), alternate: (132, 27) },
        QueryReply::Null,
        QueryReply::Other(0xa1, vec![1, 2, 3]),
    ];
    let mut record = vec![Aid::StructuredField.octet()];
    replies.iter().for_each(|reply| reply.write(&mut record));
    let Ok(Inbound::Fields(fields)) = Inbound::parse(&record) else { panic!() };
    assert_eq!(fields, replies.map(InboundField::Query));
}

#[test]
fn structured_fields_go_both_ways() {
    let fields = [
        OutboundField::ReadPartition(QueryRequest::Query),
        OutboundField::ReadPartition(QueryRequest::List(&[0x81, 0x86])),
        OutboundField::ReadPartition(QueryRequest::Equivalent(&[0x81])),
        OutboundField::ReadPartition(QueryRequest::All),
        OutboundField::ReadPartition(QueryRequest::ReadModifiedAll),
        OutboundField::EraseReset { is_alternate: true },
        OutboundField::SetReplyMode { mode: ReplyMode::Character, attributes: &[0x41, 0x42] },
        OutboundField::CreatePartition(&[0, 0]),
        OutboundField::Data(&[0xf1, 0xc3]),
        OutboundField::Ddm(&[0x41, 0x12]),
    ];
    let mut data = Vec::new();
    fields.iter().for_each(|field| field.write(&mut data));
    assert_eq!(OutboundFields::new(&data).collect::<Vec<_>>(), fields.map(Ok));
    // A length of zero is that of the rest.
    assert_eq!(
        OutboundFields::new(&[0, 0, 0x01, 0xff, 0x02]).next(),
        Some(Ok(OutboundField::ReadPartition(QueryRequest::Query)))
    );
    let errors = |data: &[u8]| OutboundFields::new(data).map(|field| field.unwrap_err()).collect::<Vec<_>>();
    assert_eq!(errors(&[0, 2, 1]), [DataError::FieldLength(2)]);
    assert_eq!(errors(&[0, 9, 1]), [DataError::Truncated]);
    assert_eq!(errors(&[0, 5, 1, 0, 2]), [DataError::Partition(0)]);
    assert_eq!(errors(&[0, 3, 0x55, 0, 4, 3, 7]), [DataError::Field(0x55), DataError::Field(3)]);
}

#[test]
fn file_transfer_goes_both_ways() {
    let all = [
        Ddm::Open { name: *OPEN_DATA, is_upload: true },
        Ddm::Open { name: *OPEN_DATA, is_upload: false },
        Ddm::Open { name: *OPEN_MESSAGE, is_upload: false },
        Ddm::Close,
        Ddm::SetCursor,
        Ddm::Get,
        Ddm::Insert,
        Ddm::InsertData(b"abc"),
        Ddm::InsertData(b""),
        Ddm::Opened,
        Ddm::Closed,
        Ddm::Data { record: 7, data: b"xyz" },
        Ddm::Inserted { record: 70_000 },
        Ddm::Error { request: 0x46, error: DdmError::EndOfFile },
    ];
    for ddm in all {
        let mut record = Vec::new();
        ddm.write(&mut record);
        let Some(Ok(OutboundField::Ddm(body))) = OutboundFields::new(&record).next() else { panic!() };
        assert_eq!(Ddm::parse(body), Ok(ddm));
    }
    let mut record = Vec::new();
    all[0].write(&mut record);
    // The lengths by which terminals know the two forms.
    assert_eq!((record.len(), record[1]), (0x29, 0x29));
    record.clear();
    all[2].write(&mut record);
    assert_eq!((record.len(), record[1]), (0x23, 0x23));
}

/// spec: RFC2355 6
#[test]
fn tn3270e_negotiation_goes_both_ways() {
    let device_type = || "IBM-3278-2-E".to_owned();
    let all = [
        Negotiation::SendDeviceType,
        Negotiation::DeviceTypeRequest { device_type: device_type(), resource: None },
        Negotiation::DeviceTypeRequest {
            device_type: device_type(),
            resource: Some(Resource::Connect("LU01".into())),
        },
        Negotiation::DeviceTypeRequest {
            device_type: "IBM-3287-1".into(),
            resource: Some(Resource::Associate("LU01".into())),
        },
        Negotiation::DeviceTypeIs { device_type: device_type(), name: Some("LU01".into()) },
        Negotiation::DeviceTypeIs { device_type: device_type(), name: None },
        Negotiation::DeviceTypeReject(DeviceReason::DeviceInUse),
        Negotiation::FunctionsRequest { functions: Functions::ALL, has_others: false },
        Negotiation::FunctionsIs(Functions::of(&[Function::Responses])),
    ];
    for negotiation in all {
        assert_eq!(Negotiation::parse(&negotiation.body()), Some(negotiation));
    }
    assert_eq!(
        Negotiation::parse(&[3, 7, 2, 5]),
        Some(Negotiation::FunctionsRequest {
            functions: Functions::of(&[Function::Responses]),
            has_others: true
        })
    );
    assert_eq!(Negotiation::parse(b"\x02\x07IBM 3278"), None, "a space is not graphic");
    assert_eq!(Negotiation::parse(&[2, 7]), None);
    let header = Header { data_type: DataType::Response, request: 0, response: 1, sequence: 0x1234 };
    assert_eq!(header.octets(), [2, 0, 1, 0x12, 0x34]);
    assert_eq!(Header::parse(&[2, 0, 1, 0x12, 0x34, 9]), Some((header, &[9][..])));
    assert_eq!((Header::parse(&[9, 0, 0, 0, 0]), Header::parse(&[0, 0])), (None, None));
}

#[test]
fn any_octets_can_be_read() {
    let mut random = Random::from_number(3270);
    for _ in 0..20_000 {
        let length = random.public_below(40);
        let octets: Vec<u8> = (0..length).map(|_| (random.public_below(256)) as u8).collect();
        assert!(Orders::new(&octets).count() <= octets.len());
        assert!(OutboundFields::new(&octets).count() <= octets.len());
        let _ = (Inbound::parse(&octets), ModifiedField::parse(&octets));
        let _ = (Ddm::parse(&octets), Negotiation::parse(&octets), Header::parse(&octets));
    }
}
