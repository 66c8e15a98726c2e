//! How many connections a fake server says that there is room for.

use crate::random::Dice;

/// What a server answers when it is asked. As long as it is up all its processes answer alike: what
/// they are asked for changes with a restart only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// Its settings. The last one is not there before PostgreSQL 16.
    Settings { max_connections: u32, superuser_reserved: u32, reserved: Option<u32> },
    /// Nothing that says how many.
    Unsaid(Unsaid),
}

/// How a server fails to say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsaid {
    /// By an error.
    Refused,
    /// It has no such setting.
    Missing,
    /// What it says is no number.
    Words,
}

impl Room {
    /// What PostgreSQL begins with.
    pub(crate) const DEFAULT: Self =
        Self::Settings { max_connections: 100, superuser_reserved: 3, reserved: None };

    /// One that is small, most of the time: a large one keeps nobody waiting.
    pub(crate) fn draw(dice: &mut Dice) -> Self {
        let small = Self::Settings {
            max_connections: dice.between(3..=12) as u32,
            superuser_reserved: dice.between(0..=3) as u32,
            reserved: *dice.pick(&[None, None, Some(0), Some(2)]),
        };
        let unsaid = *dice.pick(&[Unsaid::Refused, Unsaid::Missing, Unsaid::Words]);
        dice.weighted(&[(12, small), (4, Self::DEFAULT), (4, Self::Unsaid(unsaid))])
    }

    /// Whether it says how many.
    pub(crate) fn is_said(self) -> bool {
        matches!(self, Self::Settings { .. })
    }

    /// Most connections of one pgweir, of so many: together they may have nine tenths of what is
    /// left to everybody, and each may have one. `None` if there is no limit.
    pub(crate) fn most(self, instances: u64) -> Option<u64> {
        match self {
            Self::Settings { max_connections, superuser_reserved, reserved } => {
                let kept = superuser_reserved + reserved.unwrap_or(0);
                let free = max_connections.saturating_sub(kept);
                Some((u64::from(free) * 9 / (10 * instances)).max(1))
            }
            Self::Unsaid(_) => None,
        }
    }

    /// The row that says it, or the error that does not.
    pub(crate) fn row(self) -> Result<[Option<String>; 3], String> {
        match self {
            Self::Settings { max_connections, superuser_reserved, reserved } => {
                let said = [Some(max_connections), Some(superuser_reserved), reserved];
                Ok(said.map(|count| count.map(|count| count.to_string())))
            }
            Self::Unsaid(Unsaid::Refused) => {
                Err("permission denied for function current_setting []".to_owned())
            }
            Self::Unsaid(Unsaid::Missing) => Ok([None, None, None]),
            Self::Unsaid(Unsaid::Words) => {
                Ok(["many", "some", "few"].map(|it| Some(it.to_owned())))
            }
        }
    }
}

#[cfg(test)]
mod tests;
