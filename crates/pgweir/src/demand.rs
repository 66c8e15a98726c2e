//! What a configuration may open at a server, and what that has room for, in words.

use pgweir_config::{Binding, Demand, Limit, Room, address};

/// All of it, what binds it, and what to do where it is too much.
pub(crate) fn in_words(demand: &Demand, room: Option<Room>) -> String {
    let place = address(&demand.host, demand.port);
    let most = demand.most(room);
    let opens = match most.connections {
        Some(most) => format!("{place}: all pools together may open {most}"),
        None => format!("{place}: all pools together may open connections without limit"),
    };
    let binding = most.binding.map_or("nothing", Binding::name);
    let Some(room) = room else {
        let binds = match (demand.limit, most.binding) {
            (Limit::OfRoom { .. }, Some(_)) => {
                format!("{binding} binds, or max_server_connections, which is made of it")
            }
            (Limit::OfRoom { .. }, None) => {
                "max_server_connections binds, which is made of it".to_owned()
            }
            (Limit::None | Limit::Set(_), _) => format!("{binding} binds"),
        };
        return format!("{opens}, its room is not known: {binds}");
    };
    let Room { connections_max, reserved } = room;
    let free = room.free();
    let text = format!(
        "{opens}, there is room for {free} (max_connections {connections_max} less {reserved} \
         reserved): {binding} binds"
    );
    match demand.fits(room) {
        true => text,
        false => {
            let limit = match demand.limit {
                Limit::Set(_) => "lower max_server_connections",
                Limit::None | Limit::OfRoom { .. } => "set max_server_connections",
            };
            format!("{text}; lower pool_size, {limit}, or raise max_connections")
        }
    }
}
