//! Panels to try a server with.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use inhost_common::storage::{Folder, Storage};
use inhost_tn3270::codec::Aid;
use inhost_tn3270::server::{
    Dialog, DialogFuture, Entered, Input, InputKind, Next, Panel, Panels, Rule, Visitor,
};

/// What was entered, by the sessions together: panel, key and values.
pub type Log = Rc<RefCell<Vec<String>>>;

/// A menu, a form, a long text, files, and prints.
#[derive(Clone)]
pub struct Place {
    pub log: Log,
    pub folder: Option<PathBuf>,
}

impl Place {
    pub fn new(folder: Option<&Path>) -> Place {
        Place { log: Log::default(), folder: folder.map(Path::to_owned) }
    }
}

impl Panels for Place {
    fn open(&self, visitor: &Visitor) -> Box<dyn Dialog> {
        let files = self.folder.as_ref().map(|path| Rc::new(Folder::open(path).unwrap()) as Rc<dyn Storage>);
        Box::new(Talk { place: self.clone(), device: visitor.device.clone(), files })
    }
}

struct Talk {
    place: Place,
    device: String,
    files: Option<Rc<dyn Storage>>,
}

/// The long text.
pub fn text() -> String {
    (1..=100).map(|number| format!("line number {number}\n")).collect()
}

fn menu(device: &str) -> Panel {
    Panel::new("MENU", "The Menu")
        .text(1, 2, "Terminal")
        .text(1, 12, device)
        .text(3, 4, "1  a form")
        .text(4, 4, "2  a long text")
        .text(5, 4, "3  a print")
        .with_command()
        .key(Aid::Pf(3), "End")
}

fn form() -> Panel {
    Panel::new("FORM", "A Form äöü [x]")
        .text(1, 2, "Name")
        .input(Input::new("name", 1, 20, 10).called("a name").required())
        .text(2, 2, "Age")
        .input(
            Input::new("age", 2, 20, 3).called("Age").of_kind(InputKind::Number).rule(Rule::Number(1, 150)),
        )
        .text(3, 2, "Secret")
        .input(Input::new("secret", 3, 20, 8).of_kind(InputKind::Password))
        .key(Aid::Pf(3), "Back")
}

impl Dialog for Talk {
    fn next<'a>(&'a mut self, entered: Entered) -> DialogFuture<'a, Next> {
        let values: Vec<String> =
            entered.values.iter().map(|(name, value)| format!("{name}={value}")).collect();
        self.place.log.borrow_mut().push(format!("{} {:?} {}", entered.panel, entered.aid, values.join(",")));
        let show = |panel| Next::Show(Box::new(panel));
        let next = match (&*entered.panel, entered.aid, entered.command()) {
            ("MENU", Aid::Pf(3), _) => Next::End,
            ("MENU", _, "1") => show(form()),
            ("MENU", _, "2") => show(Panel::lines("TEXT", "A Long Text", &text())),
            ("MENU", _, "3") => {
                let lines = text().lines().map(str::to_owned).collect();
                Next::Print { lines, panel: Box::new(menu(&self.device)) }
            }
            ("MENU", _, "") | ("TEXT", ..) | ("" | "FORM", Aid::Pf(3) | Aid::None, _) => {
                show(menu(&self.device))
            }
            ("FORM", ..) => show(menu(&self.device).note(&format!("Hello, {}", entered.value("name")))),
            (_, _, other) => show(menu(&self.device).error(&format!("{other} is not an option"))),
        };
        Box::pin(async move { next })
    }
    fn files(&self) -> Option<Rc<dyn Storage>> {
        self.files.clone()
    }
}

/// A folder that ends with the test.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("inhost-tn3270-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    pub fn write(&self, name: &str, data: &[u8]) {
        std::fs::write(self.path(name), data).unwrap();
    }
    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
