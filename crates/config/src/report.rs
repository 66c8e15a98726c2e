//! What is wrong with a file, each time with the place.

use std::fmt;
use std::path::{Path, PathBuf};

/// Something to tell about one place of a file. Prints as `file:line: key: message`.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Problem {
    /// The file as it was named on the command line.
    pub file: PathBuf,
    /// Line, counted from 1; `None` if the problem has no place in the file.
    pub line: Option<usize>,
    /// The setting with its sections, such as `pools.app.users.0.pool_size`; may be empty.
    pub key: String,
    /// What is wrong and what would be right. Holds no secret.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        if !self.key.is_empty() {
            write!(f, " {}:", self.key)?;
        }
        write!(f, " {}", self.message)
    }
}

/// A setting that is understood and does not do what it asks for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Warning(pub Problem);

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Everything that is wrong with a file, ordered by line; never empty. Prints one
/// [`Problem`] a line, without a newline at the end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Errors(Vec<Problem>);

impl Errors {
    /// The problems, in the order of the file.
    pub fn problems(&self) -> &[Problem] {
        &self.0
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.0.iter().enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}

impl From<Problem> for Errors {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

/// Collects problems while a file is read.
pub(crate) struct Report {
    file: PathBuf,
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Report {
    pub(crate) fn new(file: &Path) -> Self {
        Self { file: file.to_owned(), errors: Vec::new(), warnings: Vec::new() }
    }

    pub(crate) fn error(&mut self, line: usize, key: &str, message: impl Into<String>) {
        self.errors.push(self.problem(line, key, message.into()));
    }

    pub(crate) fn warning(&mut self, line: usize, key: &str, message: impl Into<String>) {
        self.warnings.push(self.problem(line, key, message.into()));
    }

    /// The warnings if there is no error. In the order of the file, each once: a setting that
    /// several sections inherit is in error for each of them.
    pub(crate) fn finish(mut self) -> Result<Vec<Warning>, Errors> {
        for problems in [&mut self.errors, &mut self.warnings] {
            problems.sort();
            problems.dedup();
        }
        if self.errors.is_empty() {
            Ok(self.warnings.into_iter().map(Warning).collect())
        } else {
            Err(Errors(self.errors))
        }
    }

    fn problem(&self, line: usize, key: &str, message: String) -> Problem {
        Problem { file: self.file.clone(), line: Some(line), key: key.to_owned(), message }
    }
}
