use super::*;

#[test]
fn users_are_added_verified_and_removed() {
    let directory = std::env::temp_dir().join(format!("inhost-users-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let path = directory.join("users");
    let mut users = Users::read_or_empty(&path).unwrap();
    users.add("ada", "engine", None).unwrap();
    users.add("bob", "b:o:b", Some("/bin/sh")).unwrap();
    assert!(matches!(users.add("ada", "x", None), Err(UserError::Exists(_))));
    users.write(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

    let mut users = Users::read(&path).unwrap();
    let decoy = Decoy::new().unwrap();
    assert_eq!(users.verify("ada", "engine", &decoy).unwrap().name, "ada");
    assert_eq!(users.verify("bob", "b:o:b", &decoy).unwrap().shell, Some(PathBuf::from("/bin/sh")));
    assert!(users.verify("ada", "Engine", &decoy).is_none());
    assert!(users.verify("eve", "nobody", &decoy).is_none(), "the decoy's own password opens nothing");
    users.remove("ada").unwrap();
    assert!(users.verify("ada", "engine", &decoy).is_none());
    assert!(matches!(users.remove("ada"), Err(UserError::Unknown(_))));
    assert_eq!(users.accounts().map(|account| account.name.as_str()).collect::<Vec<_>>(), ["bob"]);

    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(matches!(Users::read(&path), Err(UserError::Permissions(_, 0o644))));
    fs::remove_dir_all(&directory).unwrap();
}

/// Of two who read, change and write at once, one change would be lost.
#[test]
fn one_at_a_time_changes_a_file() {
    let directory = std::env::temp_dir().join(format!("inhost-users-lock-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let held = Users::lock(&directory.join("users")).unwrap();
    let another = fs::File::open(&directory).unwrap();
    assert!(another.try_lock().is_err());
    drop(held);
    another.try_lock().unwrap();
    fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn bad_names_passwords_and_lines_are_refused() {
    let mut users = Users::default();
    for name in ["", "1a", "a b", "a:b", "é", &"a".repeat(33)] {
        assert!(matches!(users.add(name, "x", None), Err(UserError::Name(_))));
    }
    assert!(matches!(users.add("a", "", None), Err(UserError::Password)));
    assert!(matches!(users.add("a", &"x".repeat(257), None), Err(UserError::Password)));
    assert!(matches!(users.add("a", "x", Some("sh")), Err(UserError::Shell(_))));
    let good = "# staff\n\na:$argon2id$v=19$m=8,t=1,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA:/bin/sh\n";
    let users = Users::parse(good).unwrap();
    assert_eq!(users.to_text(), good);
    let long =
        |rest: &str| format!("a:$argon2id$v=19$m=8,t=1,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA{rest}\n");
    for rest in [":", "::", ":/bin/sh:", ":/bin/sh:admin", "::operator:", ":operator"] {
        assert!(matches!(Users::parse(&long(rest)), Err(UserError::Line(1))), "{rest}");
    }
    // A file of before marks is written as it was read, and a mark that is taken away leaves nothing behind.
    for (rest, shell, marked) in
        [("", None, "::operator"), (":/bin/sh", Some("/bin/sh"), ":/bin/sh:operator")]
    {
        let mut users = Users::parse(&long(rest)).unwrap();
        users.set_operator("a", true).unwrap();
        assert_eq!(users.to_text(), long(marked));
        let mut users = Users::parse(&long(marked)).unwrap();
        let account = users.accounts().next().unwrap();
        assert!(account.is_operator && account.shell.as_deref() == shell.map(std::path::Path::new));
        users.set_operator("a", false).unwrap();
        assert_eq!(users.to_text(), long(rest));
        assert!(matches!(users.set_operator("b", true), Err(UserError::Unknown(_))));
    }
    for bad in ["a", "a:plain", ":x", "a:$argon2id$v=19$m=8,t=1,p=1$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA:sh"] {
        assert!(matches!(Users::parse(bad), Err(UserError::Line(1))), "{bad}");
    }
}
