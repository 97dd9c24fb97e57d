//! One call of a server's API: a request with all it carries, and its whole reply, both bounded.

use std::fmt;
use std::fs::File;
use std::time::Duration;

pub use reqwest::Method;
use reqwest::multipart::{Form, Part};
use reqwest::{Body, RequestBuilder, header};
use tokio::time::{Instant, timeout_at};

use super::{HttpError, Response, client, explain, parse, send, shown};

/// What a request carries.
#[derive(Debug)]
pub enum Load {
    /// Nothing.
    Nothing,
    /// A JSON text.
    Json(Vec<u8>),
    /// Bytes of this media type.
    Bytes(&'static str, Vec<u8>),
    /// A form: a file in the field of this name, and texts beside it.
    Form {
        /// The field of the file.
        field: &'static str,
        /// The file's name.
        name: String,
        /// The file, from where it stands.
        file: File,
        /// Other fields.
        texts: Vec<(&'static str, String)>,
    },
}

/// One call; it prints without its token, its headers and what it carries.
pub struct Call {
    /// `GET`, `POST`, `PUT`, `PATCH`, `DELETE` …
    pub method: Method,
    /// Where to.
    pub url: String,
    /// Goes as a bearer token.
    pub bearer: Option<String>,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
    /// Headers whose names somebody configured.
    pub named: Vec<(String, String)>,
    /// Query parameters, still to be encoded.
    pub query: Vec<(&'static str, String)>,
    /// What it carries.
    pub load: Load,
    /// How long all of it may take.
    pub within: Duration,
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} within {:?}", self.method, shown(&self.url), self.within)
    }
}

/// A whole reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

impl Call {
    /// Makes a call that carries nothing.
    pub fn new(method: Method, url: String, within: Duration) -> Self {
        let (headers, named, query) = (Vec::new(), Vec::new(), Vec::new());
        Self { method, url, bearer: None, headers, named, query, load: Load::Nothing, within }
    }

    /// Makes the call and reads its reply, which may have at most `limit` bytes.
    pub async fn whole(self, limit: usize) -> Result<Reply, HttpError> {
        let end = Instant::now() + self.within;
        let mut response = self.begin().await?;
        let (status, mut body) = (response.status(), Vec::new());
        while let Some(bytes) = timeout_at(end, response.chunk()).await.unwrap_or_else(|_| Err(late()))? {
            body.extend(bytes);
            if body.len() > limit {
                let message = format!("the reply has more than {limit} bytes");
                return Err(HttpError { message, transient: false, sent: true });
            }
        }
        Ok(Reply { status, body })
    }

    /// Makes the call and returns the reply with its body still to be read, however long that takes.
    pub async fn begin(self) -> Result<Response, HttpError> {
        let within = self.within;
        let request = self.request()?;
        tokio::time::timeout(within, send(request)).await.unwrap_or_else(|_| Err(late()))
    }

    fn request(self) -> Result<RequestBuilder, HttpError> {
        let url = parse(&self.url)?;
        let mut request = client(&url)?.request(self.method, url).query(&self.query);
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        for (name, value) in self.named {
            request = request.header(name, value);
        }
        if let Some(token) = self.bearer {
            request = request.bearer_auth(token);
        }
        Ok(match self.load {
            Load::Nothing => request,
            Load::Json(body) => request.header(header::CONTENT_TYPE, "application/json").body(body),
            Load::Bytes(kind, body) => request.header(header::CONTENT_TYPE, kind).body(body),
            Load::Form { field, name, file, texts } => request.multipart(form(field, name, file, texts)?),
        })
    }
}

fn form(field: &'static str, name: String, file: File, texts: Vec<(&'static str, String)>) -> Result<Form, HttpError> {
    let unreadable = |why: std::io::Error| HttpError { message: why.to_string(), transient: false, sent: false };
    let length = file.metadata().map_err(unreadable)?.len();
    let body = Body::from(tokio::fs::File::from_std(file));
    let part = Part::stream_with_length(body, length).file_name(name).mime_str("application/octet-stream");
    let part = part.map_err(|error| explain(&error))?;
    let form = texts.into_iter().fold(Form::new(), |form, (field, text)| form.text(field, text));
    Ok(form.part(field, part))
}

fn late() -> HttpError {
    HttpError { message: "there was no whole reply in time".into(), transient: true, sent: true }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Call, Load, Method};

    #[test]
    fn what_is_printed_has_no_secret() {
        let mut call = Call::new(Method::PUT, "http://u:s3cret@127.0.0.1/x?key=s3cret".into(), Duration::from_secs(1));
        call.bearer = Some("s3cret".into());
        call.headers.push(("x-key", "s3cret".into()));
        call.query.push(("key", "s3cret".into()));
        call.load = Load::Json(b"s3cret".to_vec());
        assert_eq!(format!("{call:?}"), "PUT http://127.0.0.1/x within 1s");
    }
}
