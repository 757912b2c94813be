//! What servers answer when they are asked for a model's size: pure, of JSON that may hold
//! anything.

use serde_json::Value;

use crate::model::{Window, WindowSource};

/// Nothing outside these is a model's size.
const SIZE_MIN: u64 = 256;
const SIZE_MAX: u64 = 1_000_000_000;

/// Which program answers, as far as its list of models tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    LlamaCpp,
    Ollama,
    LmStudio,
    Unknown,
}

/// What a list of models says about one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    pub window: Option<Window>,
    pub program: Program,
}

/// Where a size stands in an entry of a list; what is used comes before what is possible.
const SIZES: &[&str] = &[
    "/meta/n_ctx",                  // llama.cpp, of one slot
    "/loaded_context_length",       // LM Studio
    "/max_model_len",               // vLLM, SGLang
    "/top_provider/context_length", // OpenRouter
    "/context_window",              // Groq
    "/max_context_length",          // Mistral
    "/context_length",              // OpenRouter, Together, Moonshot
];
const OUTPUTS: &[&str] =
    &["/top_provider/max_completion_tokens", "/max_completion_tokens", "/max_output_tokens"];

/// Reads an answer to `GET {base}/models`.
pub fn listed(list: &Value, model: &str) -> Listed {
    let nothing = Listed { window: None, program: Program::Unknown };
    let Some(all) = entries(list) else { return nothing };
    let program = all.first().map_or(Program::Unknown, program);
    let named = all.iter().find(|entry| names(entry).any(|name| name == model));
    // llama.cpp serves its one model under any name.
    let entry = named.or(all.first().filter(|_| program == Program::LlamaCpp && all.len() == 1));
    let Some(entry) = entry else { return Listed { program, ..nothing } };
    Listed { window: sized(entry, SIZES, OUTPUTS), program }
}

/// Reads OpenRouter's answer about one model: it chooses a provider that takes the prompt.
pub fn endpoints(answer: &Value) -> Option<Window> {
    let all = answer.pointer("/data/endpoints")?.as_array()?;
    let sizes = ["/context_length"];
    let windows = all.iter().filter_map(|entry| {
        let window = sized(entry, &sizes, &["/max_completion_tokens"])?;
        Some(Window { input: size(entry.pointer("/max_prompt_tokens")), ..window })
    });
    windows.max_by_key(|window| window.prompt_max(0))
}

/// Reads llama.cpp's `GET /props`: the context of one slot.
pub fn props(answer: &Value) -> Option<Window> {
    sized(answer, &["/default_generation_settings/n_ctx"], &[])
}

/// What a server says of a model that it loads when it is asked for answers. Of one that is not
/// loaded nothing is known: the largest possible context is not the one that it will have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loaded {
    Not,
    With(Window),
}

/// Reads LM Studio's `GET /api/v0/models`; `None`: it is none, or has no such model.
pub fn lm_studio(answer: &Value, model: &str) -> Option<Loaded> {
    let entry = entries(answer)?.iter().find(|entry| names(entry).any(|name| name == model))?;
    entry["state"].as_str()?;
    Some(sized(entry, &["/loaded_context_length"], &[]).map_or(Loaded::Not, Loaded::With))
}

/// Reads Ollama's `GET /api/ps`; `None`: it is none.
pub fn ollama(answer: &Value, model: &str) -> Option<Loaded> {
    let all = answer["models"].as_array()?;
    let tagged = format!("{model}:latest");
    let is_it = |entry: &&Value| names(entry).any(|name| name == model || name == tagged);
    let loaded = all.iter().find(is_it).and_then(|entry| sized(entry, &["/context_length"], &[]));
    Some(loaded.map_or(Loaded::Not, Loaded::With))
}

/// Reads Ollama's `POST /api/show`: what the model's own file sets, no larger than the model.
/// Without that it is the server that decides, when it loads the model.
pub fn ollama_set(answer: &Value) -> Option<Window> {
    let lines = answer["parameters"].as_str()?.lines();
    let mut set = lines.filter_map(|line| line.trim().strip_prefix("num_ctx"));
    let set = in_bounds(set.next_back()?.trim().trim_matches('"').parse().ok()?)?;
    let info = answer["model_info"].as_object();
    let largest = info.into_iter().flatten().find_map(|(key, value)| {
        key.ends_with(".context_length").then(|| size(Some(value))).flatten()
    });
    Some(Window::new(set.min(largest.unwrap_or(set)), WindowSource::Server))
}

/// A list, under whichever name.
fn entries(list: &Value) -> Option<&Vec<Value>> {
    [&list["data"], &list["models"], list].into_iter().find_map(Value::as_array)
}

fn names(entry: &Value) -> impl Iterator<Item = &str> {
    ["id", "model", "name"].into_iter().filter_map(|key| entry[key].as_str())
}

fn program(entry: &Value) -> Program {
    match entry["owned_by"].as_str() {
        Some("llamacpp") => Program::LlamaCpp,
        Some("library") => Program::Ollama,
        Some("organization_owner") => Program::LmStudio,
        _ => Program::Unknown,
    }
}

fn sized(entry: &Value, sizes: &[&str], outputs: &[&str]) -> Option<Window> {
    let find = |places: &[&str]| places.iter().find_map(|place| size(entry.pointer(place)));
    let context = find(sizes)?;
    let output = find(outputs).map(|output| output.min(context));
    Some(Window { output, ..Window::new(context, WindowSource::Server) })
}

/// A count of tokens in any form that JSON has for one.
fn size(value: Option<&Value>) -> Option<u64> {
    let count = match value? {
        Value::Number(number) => match number.as_u64() {
            Some(count) => count,
            None => whole(number.as_f64()?)?,
        },
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    in_bounds(count)
}

fn in_bounds(count: u64) -> Option<u64> {
    (SIZE_MIN..=SIZE_MAX).contains(&count).then_some(count)
}

/// A float that holds a count exactly; larger ones are no count of tokens.
fn whole(number: f64) -> Option<u64> {
    let is_count = (0.0..=1e9).contains(&number) && number.fract() == 0.0;
    is_count.then(|| format!("{number:.0}").parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    fn sizes(window: Option<Window>) -> Option<(u64, Option<u64>)> {
        window.inspect(|window| assert_eq!(window.source, WindowSource::Server));
        window.map(|window| (window.context, window.output))
    }

    #[test]
    fn every_servers_list_is_read() {
        let check = |text: &str, want: Option<(u64, Option<u64>)>, program: Program| {
            let got = listed(&json(text), "m");
            assert_eq!((sizes(got.window), got.program), (want, program), "{text}");
        };
        use Program::{LlamaCpp, LmStudio, Ollama, Unknown};
        // vLLM
        check(
            r#"{"object":"list","data":[{"id":"x","max_model_len":9999},{"id":"m","owned_by":"vllm","max_model_len":32768}]}"#,
            Some((32_768, None)),
            Unknown,
        );
        // Groq, Mistral
        check(
            r#"{"data":[{"id":"m","context_window":131072,"max_completion_tokens":32768}]}"#,
            Some((131_072, Some(32_768))),
            Unknown,
        );
        check(
            r#"{"data":[{"id":"m","capabilities":{"completion_chat":true},"max_context_length":32768}]}"#,
            Some((32_768, None)),
            Unknown,
        );
        // OpenRouter
        check(
            r#"{"data":[{"id":"m","context_length":200000,"top_provider":{"context_length":163840,"max_completion_tokens":null}}]}"#,
            Some((163_840, None)),
            Unknown,
        );
        check(
            r#"{"data":[{"id":"m","context_length":200000,"top_provider":{"context_length":null,"max_completion_tokens":64000}}]}"#,
            Some((200_000, Some(64_000))),
            Unknown,
        );
        // Together
        check(r#"[{"id":"x"},{"id":"m","context_length":8192}]"#, Some((8_192, None)), Unknown);
        // llama.cpp: under any name when it has but one model; older ones know the largest alone.
        let llama = |name: &str| {
            format!(
                r#"{{"models":[{{"name":"{name}"}}],"data":[{{"id":"{name}","owned_by":"llamacpp","meta":{{"n_ctx":4096,"n_ctx_train":32768}}}}]}}"#
            )
        };
        check(&llama("m"), Some((4_096, None)), LlamaCpp);
        check(&llama("local"), Some((4_096, None)), LlamaCpp);
        check(
            r#"{"data":[{"id":"m","owned_by":"llamacpp","meta":{"n_ctx_train":32768}}]}"#,
            None,
            LlamaCpp,
        );
        check(
            r#"{"data":[{"id":"a","owned_by":"llamacpp","meta":{"n_ctx":4096}},{"id":"b","owned_by":"llamacpp"}]}"#,
            None,
            LlamaCpp,
        );
        // Ollama, LM Studio
        check(r#"{"data":[{"id":"m","owned_by":"library"}]}"#, None, Ollama);
        check(r#"{"data":[{"id":"m","owned_by":"organization_owner"}]}"#, None, LmStudio);
        // None of it.
        for text in ["{}", "[]", "null", r#"{"data":null}"#, r#"{"data":[1,null,"m"]}"#, r#""m""#] {
            check(text, None, Unknown);
        }
    }

    #[test]
    fn only_what_is_a_size_is_taken_for_one() {
        for (text, want) in [
            ("32768", Some(32_768)),
            ("32768.0", Some(32_768)),
            ("3.2768e4", Some(32_768)),
            ("\"32768\"", Some(32_768)),
            ("32768.5", None),
            ("0", None),
            ("1", None),
            ("-1", None),
            ("1e99", None),
            ("18446744073709551615", None),
            ("null", None),
            ("true", None),
            ("\"\"", None),
            ("\"many\"", None),
            ("[32768]", None),
            ("{}", None),
        ] {
            assert_eq!(size(Some(&json(text))), want, "{text}");
            let list = json(&format!(r#"{{"data":[{{"id":"m","max_model_len":{text}}}]}}"#));
            assert_eq!(listed(&list, "m").window.map(|window| window.context), want, "{text}");
        }
        assert_eq!(size(None), None);
    }

    #[test]
    fn the_largest_provider_of_openrouter_counts() {
        let text = r#"{"data":{"id":"m","endpoints":[
            {"context_length":65536,"max_completion_tokens":8192},
            {"context_length":163840,"max_completion_tokens":null,"max_prompt_tokens":null},
            {"context_length":262144,"max_prompt_tokens":131072},
            {"context_length":null},{}]}}"#;
        assert_eq!(sizes(endpoints(&json(text))), Some((163_840, None)));
        for text in ["{}", r#"{"data":[]}"#, r#"{"data":{"endpoints":[]}}"#] {
            assert_eq!(endpoints(&json(text)), None);
        }
    }

    #[test]
    fn local_servers_tell_what_they_have_loaded() {
        let props = |text: &str| sizes(props(&json(text)));
        assert_eq!(
            props(r#"{"default_generation_settings":{"n_ctx":8192},"total_slots":2}"#),
            Some((8_192, None))
        );
        assert_eq!(props(r#"{"default_generation_settings":{"n_ctx":0}}"#), None);
        assert_eq!(props(r#"{"error":"x"}"#), None);
        let studio = r#"{"data":[
            {"id":"other","state":"loaded","loaded_context_length":9999},
            {"id":"m","state":"loaded","max_context_length":131072,"loaded_context_length":4096},
            {"id":"n","state":"not-loaded","max_context_length":131072}]}"#;
        let with = |size| Some(Loaded::With(Window::new(size, WindowSource::Server)));
        assert_eq!(lm_studio(&json(studio), "m"), with(4_096));
        assert_eq!(lm_studio(&json(studio), "n"), Some(Loaded::Not));
        assert_eq!(lm_studio(&json(studio), "x"), None);
        assert_eq!(lm_studio(&json(r#"{"data":[{"id":"m"}]}"#), "m"), None);
    }

    #[test]
    fn ollama_tells_what_is_loaded_and_what_the_model_sets() {
        let ps = r#"{"models":[{"name":"q:latest","model":"q:latest","context_length":4096},
            {"name":"old:8b"}]}"#;
        let loaded = |model: &str| ollama(&json(ps), model);
        let with = |size| Some(Loaded::With(Window::new(size, WindowSource::Server)));
        assert_eq!((loaded("q"), loaded("q:latest")), (with(4_096), with(4_096)));
        assert_eq!((loaded("old:8b"), loaded("x")), (Some(Loaded::Not), Some(Loaded::Not)));
        assert_eq!(ollama(&json(r#"{"data":[]}"#), "q"), None);
        let show = |parameters: &str| {
            let text = serde_json::json!({"parameters": parameters,
                "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40960}});
            sizes(ollama_set(&text))
        };
        let lines = "stop           \"<|im_end|>\"\nnum_ctx        16384\ntemperature 1";
        assert_eq!(show(lines), Some((16_384, None)));
        assert_eq!(show("num_ctx 999999"), Some((40_960, None)));
        for none in ["", "num_ctx", "num_ctx x", "num_ctx 0", "temperature 1"] {
            assert_eq!(show(none), None, "{none}");
        }
        assert_eq!(ollama_set(&json(r#"{"error":"model 'x' not found"}"#)), None);
    }
}
