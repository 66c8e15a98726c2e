//! A client's way in.

use std::collections::BTreeMap;

use pgweir_wire::{ProtocolVersion, Startup, backend};

use super::script::Habit;
use super::verdict::code_of;
use super::{Client, Phase, PoolFacts};
use crate::invariants::Invariant;
use crate::postgres::parameters_of;
use crate::random::Dice;
use crate::session::{BORN, Message, State, VERSION};
use crate::world::Site;

impl Client {
    pub(super) fn take_login(&mut self, site: &mut Site, message: &Message) {
        let number = self.number;
        let Phase::Login { parameters, authenticated } = &mut self.phase else { return };
        match message.tag {
            b'R' => *authenticated = true,
            b'v' => {}
            b'S' => {
                if let Ok((name, value)) = backend::parse_parameter_status(&message.body) {
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    parameters.insert(text(name), text(value));
                }
            }
            b'K' => self.key = backend::parse_backend_key_data(&message.body).ok(),
            b'Z' => {
                let due = parameters_of(&self.settings);
                // That of some time before: if it has changed, the first reply will say so.
                match parameters.remove(VERSION) {
                    Some(version) => self.oracle.told(&version),
                    None => site.ledger.fail(
                        Invariant::ToldSettings,
                        format!("c{number} was not told all at login"),
                    ),
                }
                if *parameters != due {
                    let text = format!("c{number} was told {parameters:?} at login, not {due:?}");
                    site.ledger.fail(Invariant::ToldSettings, text);
                }
                if !*authenticated || self.key.is_none() || message.body != b"I" {
                    site.ledger.fail(
                        Invariant::RightLogin,
                        format!("c{number} was let in without all that is due"),
                    );
                }
                site.ledger.counts.sessions += 1;
                self.phase = Phase::Ready;
                self.survived(site, true);
            }
            b'E' => {
                let code = code_of(message);
                let invalid = self.settings.iter().any(|(n, v)| !State::is_valid(n, v));
                if !(invalid && code == "22023") {
                    self.check_refusal(site, message);
                }
                site.ledger.counts.refusals += 1;
                self.phase = Phase::Dismissed;
            }
            tag => site
                .ledger
                .fail(Invariant::RightLogin, format!("c{number} got message type {tag} at login")),
        }
    }
}

/// Settings to ask for, unless it is to be `plain`, and the packet that does. `customs`: what most
/// clients do.
pub(super) fn startup(
    pool: &PoolFacts,
    dice: &mut Dice,
    plain: bool,
    customs: &[Habit],
) -> (BTreeMap<String, String>, Vec<u8>) {
    let mut settings = BTreeMap::new();
    if dice.chance(0.4) {
        let name = *dice.pick(&["web", "batch", r"o'neil \ sons", "café"]);
        settings.insert("application_name".to_owned(), name.to_owned());
    }
    if dice.chance(if customs.contains(&Habit::Settings) { 0.8 } else { 0.3 }) {
        let nowhere = if customs.contains(&Habit::Settings) { 20 } else { 4 };
        let zone = dice.weighted(&[(10, "UTC"), (10, "Asia/Tokyo"), (nowhere, "Nowhere")]);
        settings.insert("timezone".to_owned(), zone.to_owned());
    }
    if dice.chance(0.1) {
        settings.insert("datestyle".to_owned(), "ISO, DMY".to_owned());
    }
    if dice.chance(if customs.contains(&Habit::Settings) { 0.5 } else { 0.2 }) {
        settings.insert("temp_buffers".to_owned(), "16MB".to_owned());
    }
    if customs.contains(&Habit::Settings) && dice.chance(0.15) {
        let value = dice.weighted(&[(3, "on"), (1, "perhaps")]);
        settings.insert(BORN.to_owned(), value.to_owned());
    }
    if plain {
        settings.clear();
    }
    let mut parameters: Vec<(String, String)> = vec![
        ("user".to_owned(), pool.user.clone()),
        ("database".to_owned(), pool.database.clone()),
    ];
    if pool.replicates {
        parameters.push(("replication".to_owned(), "database".to_owned()));
    }
    for (name, value) in &settings {
        if name == "timezone" && dice.chance(0.3) {
            parameters.push(("options".to_owned(), format!("-c TimeZone={value}")));
        } else {
            parameters.push((name.clone(), value.clone()));
        }
    }
    let versions =
        [(8, ProtocolVersion::V3_0), (2, ProtocolVersion::V3_2), (1, ProtocolVersion(3 << 16 | 9))];
    let version = dice.weighted(&versions);
    let mut packet = Vec::new();
    let pairs = parameters.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    Startup::write(&mut packet, version, pairs);
    (settings, packet)
}
