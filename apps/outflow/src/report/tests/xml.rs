//! A reader of XML that knows only what a drawing may use, and nothing more: no
//! comments, no instructions, no entities but the usual five and numbers.

/// What is wrong with a text, if anything is.
pub fn check(text: &str) -> Result<(), String> {
    let mut open: Vec<String> = Vec::new();
    let mut rest = text.trim_end();
    let mut seen = 0;
    while !rest.is_empty() {
        let (content, tag) = rest.split_once('<').ok_or("text behind the last tag")?;
        characters(content)?;
        if open.is_empty() && !content.is_empty() {
            return Err(format!("text outside of the drawing: {content:?}"));
        }
        let (tag, more) = tag.split_once('>').ok_or("a tag without an end")?;
        rest = more;
        seen += 1;
        if let Some(name) = tag.strip_prefix('/') {
            let opened = open.pop();
            if opened.as_deref() != Some(name) {
                return Err(format!("{name} ends, {opened:?} is open"));
            }
            continue;
        }
        if seen > 1 && open.is_empty() {
            return Err("more than one drawing".to_owned());
        }
        let is_empty = tag.ends_with('/');
        let tag = tag.trim_end_matches('/');
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphabetic()) {
            return Err(format!("a tag of this name: {name:?}"));
        }
        read_attributes(attributes)?;
        if !is_empty {
            open.push(name.to_owned());
        }
    }
    match open.is_empty() {
        true => Ok(()),
        false => Err(format!("never ended: {open:?}")),
    }
}

fn read_attributes(text: &str) -> Result<(), String> {
    let mut rest = text.trim();
    let mut names = Vec::new();
    while !rest.is_empty() {
        let (name, more) = rest
            .split_once("=\"")
            .ok_or(format!("no value: {rest:?}"))?;
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') || names.contains(&name) {
            return Err(format!("an attribute of this name: {name:?}"));
        }
        names.push(name);
        let (value, more) = more.split_once('"').ok_or("a value without an end")?;
        characters(value)?;
        rest = more.trim_start();
    }
    Ok(())
}

fn characters(text: &str) -> Result<(), String> {
    if text.contains(['<', '>']) || text.chars().any(|c| c.is_control() && c != '\n') {
        return Err(format!("a bare sign in {text:?}"));
    }
    for part in text.split('&').skip(1) {
        let (entity, _) = part.split_once(';').ok_or("an entity without an end")?;
        let is_number = entity
            .strip_prefix('#')
            .is_some_and(|it| it.parse::<u32>().is_ok());
        if !is_number && !["amp", "lt", "gt", "quot", "apos"].contains(&entity) {
            return Err(format!("an unknown entity: {entity:?}"));
        }
    }
    Ok(())
}
