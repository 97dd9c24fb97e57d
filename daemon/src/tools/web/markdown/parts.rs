//! What is more than running text: links, pictures, entries of lists, code, tables.

use url::Url;

use super::{ADDRESS, Gap, Writer};

impl Writer<'_> {
    fn address(&self, address: &str) -> Option<String> {
        let url = match self.base {
            Some(base) => base.join(address).ok()?,
            None => Url::parse(address).ok()?,
        };
        (["http", "https", "mailto"].contains(&url.scheme()) && url.as_str().len() <= ADDRESS).then(|| url.into())
    }

    pub(super) fn begin_link(&mut self, href: Option<String>) {
        self.end_link();
        let within = href.filter(|href| !href.trim_start().starts_with('#'));
        let Some(href) = within.and_then(|href| self.address(href.trim())).filter(|_| !self.in_pre) else { return };
        self.marks.push('[');
        self.link = Some((self.out.len(), href));
    }

    pub(super) fn end_link(&mut self) {
        let Some((_, href)) = self.link.take() else { return };
        match self.marks.rfind('[') {
            Some(at) => drop(self.marks.remove(at)),
            None => self.out.extend(["](", &href, ")"]),
        }
    }

    pub(super) fn image(&mut self, alt: Option<String>, src: Option<String>) {
        let alt = alt.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        if !alt.is_empty() {
            self.flush();
            let src = src.and_then(|src| self.address(&src)).unwrap_or_default();
            self.out.extend(["![", &alt, "](", &src, ")"]);
        }
    }

    pub(super) fn item(&mut self) {
        self.marks = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number = number.saturating_add(1);
                format!("{}. ", number.saturating_sub(1))
            }
            _ => "- ".into(),
        };
    }

    pub(super) fn rule(&mut self) {
        self.space(Gap::Paragraph);
        self.flush();
        self.out.push_str("---");
        self.space(Gap::Paragraph);
    }

    pub(super) fn begin_code(&mut self) {
        self.flush();
        self.out.extend(["```\n", &self.prefix()]);
        self.in_pre = true;
    }

    pub(super) fn end_code(&mut self) {
        if std::mem::take(&mut self.in_pre) {
            let line = if self.out.ends_with('\n') { String::new() } else { format!("\n{}", self.prefix()) };
            self.out.extend([&line, "```"]);
        }
    }

    pub(super) fn begin_row(&mut self) {
        self.end_row();
        self.space(Gap::Line);
    }

    pub(super) fn cell(&mut self) {
        let Some((cells, _)) = self.row else { return };
        self.marks.clear();
        if cells == 0 {
            self.flush();
            self.out.push_str("| ");
        } else {
            self.out.push_str(" | ");
        }
        self.gap = Gap::None;
        self.row = self.row.map(|(cells, first)| (cells + 1, first));
    }

    pub(super) fn end_row(&mut self) {
        let Some((cells @ 1.., first)) = self.row else { return };
        self.out.push_str(" |");
        if first {
            self.out.extend(["\n", &self.prefix(), "|", &" --- |".repeat(cells)]);
        }
        self.marks.clear();
        (self.row, self.gap) = (Some((0, false)), Gap::Line);
    }
}
