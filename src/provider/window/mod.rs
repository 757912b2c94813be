//! How much a model takes in: whom to ask for it, and what is known without asking.
//!
//! Nobody is asked where the table is right: a maker's own server of a model that the table has.
//! A server on this machine or in the same network is asked for its list of models and then, by
//! what that tells, for what it has loaded; any other for its list alone. All of it takes
//! [`ASK_MAX`] at most, and what fails is not known. An answer is remembered; only a server that
//! has not loaded the model yet is asked again, [`TRIES_MAX`] times in all.

mod answer;
mod table;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::cancel::{self, Cancel};
use crate::model::{Request, Usage, Window, WindowSource};
use crate::provider::openai::endpoint::Endpoint;
use crate::provider::openai::usage;
use answer::{Loaded, Program};

/// How long all questions together may take.
const ASK_MAX: Duration = Duration::from_secs(2);
/// How often a server that has not loaded the model is asked.
const TRIES_MAX: u32 = 3;
/// A plan's backend takes no more of a model than this, whatever the model could.
const PLAN_CONTEXT: u64 = 400_000;
const PLAN_INPUT: u64 = 272_000;

/// Of a prompt estimated at more tokens than this, a report of less than half is no mistake of
/// the estimate any more.
const CUT_ESTIMATE_MIN: u64 = 4_000;
/// A report below this is of what was new since the last request, as older servers count.
const CUT_REPORT_MIN: u64 = 1_000;

/// Servers of those who make models.
const MAKERS: &[&str] = &[
    "anthropic.com",
    "googleapis.com",
    "x.ai",
    "deepseek.com",
    "moonshot.ai",
    "moonshot.cn",
    "z.ai",
    "bigmodel.cn",
    "minimax.io",
];

/// Asks the server: a GET without a body, else a POST; `None` for anything but JSON and success.
pub type Ask<'a> = &'a (dyn Fn(&str, Option<Value>, &Cancel) -> Option<Value> + Sync);

/// What kind of server it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Never asked.
    Vendor,
    Plan,
    /// Asked only for what the table does not have.
    Maker,
    /// Resells the models of all makers.
    Router,
    /// On this machine or in the same network: may be asked for what no public server tells.
    Near,
    Far,
}

impl Place {
    fn of(endpoint: &Endpoint, is_plan: bool) -> Place {
        let is_at = |host: &str| endpoint.is_at(host);
        match endpoint.base() {
            _ if is_plan || is_at("chatgpt.com") => Place::Plan,
            _ if is_at("api.openai.com") => Place::Vendor,
            _ if is_at("openrouter.ai") => Place::Router,
            _ if MAKERS.iter().any(|host| is_at(host)) => Place::Maker,
            base if base.is_near() => Place::Near,
            _ => Place::Far,
        }
    }
}

/// What came of asking.
enum Found {
    Window(Window),
    /// The server decides when it loads the model.
    NotLoaded,
    Nothing,
}

/// The sizes of the models of one server.
pub struct Windows {
    endpoint: Endpoint,
    place: Place,
    memory: Mutex<Memory>,
}

/// Of the model that was asked for last.
#[derive(Default)]
struct Memory {
    model: String,
    tries: u32,
    settled: Option<Option<Window>>,
    /// The person was told that prompts are cut.
    is_cut_told: bool,
}

impl Windows {
    pub fn new(endpoint: &Endpoint, is_plan: bool) -> Windows {
        Windows {
            endpoint: endpoint.clone(),
            place: Place::of(endpoint, is_plan),
            memory: Mutex::default(),
        }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known without asking; `None` inside: known to be unknown.
    fn settled(&self, model: &str) -> Option<Option<Window>> {
        match self.place {
            Place::Vendor => Some(table::hosted(model)),
            Place::Plan => Some(table::hosted(model).map(of_plan)),
            Place::Maker if table::hosted(model).is_some() => Some(table::hosted(model)),
            Place::Maker | Place::Router | Place::Near | Place::Far => {
                let memory = self.memory();
                memory.settled.filter(|_| memory.model == model)
            }
        }
    }

    /// What is known without asking anybody.
    pub fn known(&self, model: &str) -> Option<Window> {
        self.settled(model).flatten()
    }

    /// What is known or can be learned within [`ASK_MAX`].
    pub fn window(&self, model: &str, cancel: &Cancel, ask: Ask<'_>) -> Option<Window> {
        if let Some(window) = self.settled(model) {
            return window;
        }
        let found = cancel::within(ASK_MAX, cancel, |until| self.learn(model, ask, until));
        if cancel.is_cancelled() {
            return None; // not answered: the next turn asks again
        }
        let mut memory = self.memory();
        if memory.model != model {
            *memory = Memory { model: model.to_owned(), ..Memory::default() };
        }
        memory.tries += 1;
        let window = match found {
            Some(Found::Window(window)) => Some(window),
            Some(Found::NotLoaded) if memory.tries < TRIES_MAX => return None,
            Some(Found::NotLoaded | Found::Nothing) | None => self.by_table(model),
        };
        memory.settled = Some(window);
        window
    }

    /// Where the server says nothing.
    fn by_table(&self, model: &str) -> Option<Window> {
        if self.place == Place::Near { table::anywhere(model) } else { table::hosted(model) }
    }

    fn learn(&self, model: &str, ask: Ask<'_>, until: &Cancel) -> Found {
        let found = |window: Option<Window>| window.map_or(Found::Nothing, Found::Window);
        let get = |url: &str| ask(url, None, until);
        if self.place == Place::Router {
            let url = self.endpoint.url(&format!("models/{model}/endpoints"));
            return found(get(&url).as_ref().and_then(answer::endpoints));
        }
        let list = get(&self.endpoint.url("models"));
        let listed = list.as_ref().map(|list| answer::listed(list, model));
        let window = listed.and_then(|listed| listed.window);
        if window.is_some() || self.place != Place::Near {
            return found(window);
        }
        let program = listed.map_or(Program::Unknown, |listed| listed.program);
        let props = || get(&self.endpoint.root_url("props")).as_ref().and_then(answer::props);
        let studio = || {
            let list = get(&self.endpoint.root_url("api/v0/models"))?;
            Some(match answer::lm_studio(&list, model)? {
                Loaded::With(window) => Found::Window(window),
                Loaded::Not => Found::NotLoaded,
            })
        };
        match program {
            Program::LlamaCpp => found(props()),
            Program::Ollama => self.ollama(model, ask, until).unwrap_or(Found::Nothing),
            Program::LmStudio => studio().unwrap_or(Found::Nothing),
            // One that has no list at all would not say more elsewhere.
            Program::Unknown if listed.is_none() => Found::Nothing,
            Program::Unknown => match props() {
                Some(window) => Found::Window(window),
                None => self.ollama(model, ask, until).or_else(studio).unwrap_or(Found::Nothing),
            },
        }
    }

    /// `None`: it is no Ollama.
    fn ollama(&self, model: &str, ask: Ask<'_>, until: &Cancel) -> Option<Found> {
        let loaded = ask(&self.endpoint.root_url("api/ps"), None, until)?;
        if let Loaded::With(window) = answer::ollama(&loaded, model)? {
            return Some(Found::Window(window));
        }
        let body = serde_json::json!({"model": model});
        let shown = ask(&self.endpoint.root_url("api/show"), Some(body), until);
        let set = shown.as_ref().and_then(answer::ollama_set);
        Some(set.map_or(Found::NotLoaded, Found::Window))
    }

    /// Once: what to tell the person when the server read much less than it was sent.
    pub fn cut(&self, request: &Request<'_>, reported: &Usage, authority: &str) -> Option<String> {
        let is_public =
            matches!(self.place, Place::Vendor | Place::Plan | Place::Maker | Place::Router);
        let sent = usage::estimate(request, 0).input;
        let is_cut = CUT_ESTIMATE_MIN < sent
            && (CUT_REPORT_MIN..sent / 2).contains(&reported.input)
            && !reported.estimated;
        let fits = self
            .known(request.model)
            .is_some_and(|window| window.source == WindowSource::Server && sent <= window.context);
        if is_public || !is_cut || fits {
            return None;
        }
        if std::mem::replace(&mut self.memory().is_cut_told, true) {
            return None;
        }
        let read = reported.input;
        Some(format!(
            "{authority} read {read} of about {sent} tokens: it cut the prompt to the context that \
             it gives the model. Give it a larger one (Ollama: OLLAMA_CONTEXT_LENGTH in the \
             server's environment, or num_ctx in the model's file; llama.cpp: -c), or set \
             context.window_tokens to what it is"
        ))
    }
}

/// The part of it that a plan gives.
fn of_plan(window: Window) -> Window {
    if window.context <= PLAN_CONTEXT {
        return window;
    }
    Window { context: PLAN_CONTEXT, input: Some(PLAN_INPUT), ..window }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Reason;
    use crate::model::{Message, Role};

    /// Asks a server that answers like this, and tells what it was asked for.
    fn ask(windows: &Windows, model: &str, answers: &[(&str, &str)]) -> (Option<u64>, Vec<String>) {
        let asked = Mutex::new(Vec::new());
        let window = windows.window(model, &Cancel::new(), &|url, body, _| {
            let path = url.split_once("//").and_then(|(_, rest)| rest.split_once('/')).unwrap().1;
            let how = if body.is_some() { "POST " } else { "" };
            asked.lock().unwrap().push(format!("{how}{path}"));
            let answer = answers.iter().find(|(known, _)| *known == path)?.1;
            serde_json::from_str(answer).ok()
        });
        (window.map(|window| window.context), asked.into_inner().unwrap())
    }

    fn at(url: &str) -> Windows {
        Windows::new(&Endpoint::parse(url).unwrap(), false)
    }

    #[track_caller]
    fn check(url: &str, model: &str, answers: &[(&str, &str)], want: Option<u64>, asks: &[&str]) {
        let windows = at(url);
        let (window, asked) = ask(&windows, model, answers);
        assert_eq!((window, asked), (want, asks.iter().map(ToString::to_string).collect()));
        assert_eq!(windows.known(model).map(|window| window.context), want, "{url} {model}");
        let (again, asked) = ask(&windows, model, answers);
        assert_eq!((again, asked), (want, Vec::new()), "asked again: {url} {model}");
    }

    #[test]
    fn nobody_is_asked_where_the_table_is_right() {
        check("https://api.openai.com/v1", "gpt-5", &[], Some(400_000), &[]);
        check("https://api.openai.com/v1", "gpt-99", &[], None, &[]);
        check("https://chatgpt.com/backend-api/codex", "gpt-5.5", &[], Some(400_000), &[]);
        let plan = Windows::new(&Endpoint::parse("http://127.0.0.1:9/codex").unwrap(), true);
        assert_eq!(ask(&plan, "gpt-5.5", &[]), (Some(400_000), Vec::new()));
        assert_eq!(plan.known("gpt-5.5").and_then(|window| window.input), Some(272_000));
        check("https://api.anthropic.com/v1", "claude-opus-4-8", &[], Some(1_000_000), &[]);
    }

    #[test]
    fn a_public_server_is_asked_for_its_list_alone() {
        let list = r#"{"data":[{"id":"llama-3.3-70b-versatile","context_window":131072}]}"#;
        let groq = "https://api.groq.com/openai/v1";
        let asks = ["openai/v1/models"];
        check(groq, "llama-3.3-70b-versatile", &[(asks[0], list)], Some(131_072), &asks);
        // Of one that it does not list, or when it fails, the table has the word.
        check(groq, "gpt-oss-120b", &[(asks[0], list)], Some(131_072), &asks);
        check(groq, "qwen3-32b", &[], Some(131_072), &asks);
        check("https://api.mistral.ai/v1", "unheard-of", &[], None, &["v1/models"]);
        check("https://api.deepseek.com/v1", "deepseek-new", &[], None, &["v1/models"]);
    }

    #[test]
    fn a_router_is_asked_about_the_one_model() {
        let path = "api/v1/models/deepseek/deepseek-v4-pro/endpoints";
        let answer = r#"{"data":{"endpoints":[{"context_length":163840}]}}"#;
        let url = "https://openrouter.ai/api/v1";
        let model = "deepseek/deepseek-v4-pro";
        check(url, model, &[(path, answer)], Some(163_840), &[path]);
        check(url, model, &[], Some(1_000_000), &[path]);
    }

    #[test]
    fn a_server_nearby_is_asked_by_what_its_list_tells() {
        let near = "http://127.0.0.1:8080/v1";
        let list =
            |owner: &str| format!(r#"{{"data":[{{"id":"qwen3:8b","owned_by":"{owner}"}}]}}"#);
        let props = r#"{"default_generation_settings":{"n_ctx":8192}}"#;
        let model = "qwen3:8b";
        let vllm = r#"{"data":[{"id":"qwen3:8b","owned_by":"vllm","max_model_len":16384}]}"#;
        check(near, model, &[("v1/models", vllm)], Some(16_384), &["v1/models"]);
        let llama = list("llamacpp");
        let answers = [("v1/models", llama.as_str()), ("props", props)];
        check(near, model, &answers, Some(8_192), &["v1/models", "props"]);
        let studio = list("organization_owner");
        let loaded =
            r#"{"data":[{"id":"qwen3:8b","state":"loaded","loaded_context_length":4096}]}"#;
        let answers = [("v1/models", studio.as_str()), ("api/v0/models", loaded)];
        check(near, model, &answers, Some(4_096), &["v1/models", "api/v0/models"]);
        // Below another root, and with a list that does not tell whose it is.
        let other = list("x");
        let answers = [("gw/v1/models", other.as_str()), ("gw/api/v0/models", loaded)];
        let asks = ["gw/v1/models", "gw/props", "gw/api/ps", "gw/api/v0/models"];
        check("http://gpu:9/gw/v1", model, &answers, Some(4_096), &asks);
        // Nothing is made up of what anybody can run; a proxy for a maker's model is another thing.
        check(near, model, &[], None, &["v1/models"]);
        check(near, "gpt-5", &[], Some(400_000), &["v1/models"]);
    }

    #[test]
    fn ollama_is_asked_again_once_it_may_have_loaded_the_model() {
        let list = r#"{"data":[{"id":"q","owned_by":"library"}]}"#;
        let none = r#"{"models":[]}"#;
        let show = r#"{"parameters":"","model_info":{"qwen3.context_length":40960}}"#;
        let loaded = r#"{"models":[{"name":"q:latest","context_length":4096}]}"#;
        let set = r#"{"parameters":"num_ctx 16384"}"#;
        let first = ["v1/models", "api/ps", "POST api/show"];
        let cold = [("v1/models", list), ("api/ps", none), ("api/show", show)];
        let windows = at("http://localhost:11434/v1");
        let (window, asked) = ask(&windows, "q", &cold);
        assert_eq!((window, asked.as_slice()), (None, first.map(str::to_owned).as_slice()));
        let warm = [("v1/models", list), ("api/ps", loaded)];
        assert_eq!(ask(&windows, "q", &warm).0, Some(4_096));
        assert_eq!(ask(&windows, "q", &warm), (Some(4_096), Vec::new()));
        // A server without /api/show, and one whose model sets its context.
        let cold = [("v1/models", list), ("api/ps", none)];
        let windows = at("http://localhost:11434/v1");
        for _ in 0..TRIES_MAX {
            assert_eq!(ask(&windows, "q", &cold), (None, first.map(str::to_owned).to_vec()));
        }
        assert_eq!(ask(&windows, "q", &cold), (None, Vec::new()), "it is not asked for ever");
        let cold = [("v1/models", list), ("api/ps", none), ("api/show", set)];
        check("http://localhost:11434/v1", "q", &cold, Some(16_384), &first);
    }

    #[test]
    fn a_question_that_is_cancelled_is_not_taken_for_answered() {
        let windows = at("http://127.0.0.1:8080/v1");
        let cancel = Cancel::new();
        let window = windows.window("m", &cancel, &|_, _, until| {
            cancel.cancel(Reason::User);
            assert!(until.is_cancelled());
            None
        });
        assert_eq!(window, None);
        let list = r#"{"data":[{"id":"m","max_model_len":4096}]}"#;
        assert_eq!(ask(&windows, "m", &[("v1/models", list)]).0, Some(4_096));
        assert_eq!(ask(&windows, "n", &[]).1, ["v1/models"], "another model");
    }

    #[test]
    fn a_cut_prompt_is_told_once_and_only_where_it_can_be_one() {
        let text = "word ".repeat(12_000);
        let messages = [Message::text(Role::User, &text)];
        let request = |messages| Request {
            model: "m",
            system: &[],
            messages,
            tools: &[],
            session_id: "s",
            reasoning_effort: None,
            reasoning_summary: None,
            max_output_tokens: None,
        };
        let told = |windows: &Windows, input: u64| {
            let usage = Usage { input, ..Usage::default() };
            windows.cut(&request(&messages), &usage, "h:1")
        };
        let near = || at("http://127.0.0.1:8080/v1");
        let windows = near();
        let told_of = told(&windows, 2_050).unwrap();
        assert!(told_of.starts_with("h:1 read 2050 of about 15000 tokens"), "{told_of}");
        assert!(told_of.contains("OLLAMA_CONTEXT_LENGTH"), "{told_of}");
        assert_eq!(told(&windows, 2_050), None, "it is told twice");
        for (input, why) in [(0, "nothing"), (60, "what was new"), (7_500, "half"), (15_000, "all")]
        {
            assert_eq!(told(&near(), input), None, "{why}");
        }
        let small = [Message::text(Role::User, &text[..16_000])];
        let usage = Usage { input: 1_500, ..Usage::default() };
        assert_eq!(near().cut(&request(&small), &usage, "h"), None, "a small prompt");
        let guessed = Usage { input: 2_050, estimated: true, ..Usage::default() };
        assert_eq!(near().cut(&request(&messages), &guessed, "h"), None, "an estimate");
        assert_eq!(told(&at("https://api.openai.com/v1"), 2_050), None);
        let roomy = near();
        let list = r#"{"data":[{"id":"m","max_model_len":32768}]}"#;
        assert_eq!(ask(&roomy, "m", &[("v1/models", list)]).0, Some(32_768));
        assert_eq!(told(&roomy, 2_050), None, "there was room for all of it");
    }
}
