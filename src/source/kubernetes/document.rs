//! Documents of status files: lists, arrays, watch events or single objects, one after another.
//!
//! In: JSON. Out: each object goes into the [`Inventory`] as soon as it is read, so that memory grows with what is kept,
//! not with the file.

use std::io::Read;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::inventory::{Change, Inventory};
use super::raw::RawItem;

/// Reads documents up to the end or to the first error.
pub(super) fn read(inventory: &mut Inventory, place: &str, reader: impl Read) -> serde_json::Result<()> {
    let mut deserializer = serde_json::Deserializer::from_reader(reader);
    loop {
        let mut has_begun = false;
        let document = Document { inventory: &mut *inventory, place, has_begun: &mut has_begun };
        match document.deserialize(&mut deserializer) {
            Ok(()) => {}
            // Only blanks were left.
            Err(error) if error.is_eof() && !has_begun => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// A page of a list, as a server gives it.
#[derive(Deserialize)]
pub(super) struct Page {
    /// `PodList` and the like, or `Status` in place of a list.
    pub kind: String,
    pub metadata: Option<PageMetadata>,
    /// They do not say their kind.
    pub items: Option<Vec<RawItem>>,
    /// Of a `Status`, as in HTTP.
    pub code: Option<u16>,
}

#[derive(Deserialize)]
pub(super) struct PageMetadata {
    /// Where the next page begins; empty on the last one.
    pub r#continue: Option<String>,
}

/// One document.
struct Document<'a> {
    inventory: &'a mut Inventory,
    place: &'a str,
    has_begun: &'a mut bool,
}

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a Kubernetes object or list")
    }

    /// An array of objects, as `jq` writes it.
    fn visit_seq<A: SeqAccess<'de>>(self, sequence: A) -> Result<(), A::Error> {
        *self.has_begun = true;
        Items { inventory: self.inventory, place: self.place, kind: None }.visit_seq(sequence)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        *self.has_begun = true;
        let mut fields = Map::new();
        let mut is_list = false;
        let mut watched = None;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "items" => {
                    is_list = true;
                    // Servers name the kind of a list first; `kubectl` names it last, but in every item, too.
                    let kind = list_kind(&fields);
                    map.next_value_seed(Items { inventory: self.inventory, place: self.place, kind })?;
                }
                "object" => watched = Some(map.next_value::<RawItem>()?),
                _ => {
                    fields.insert(key, map.next_value()?);
                }
            }
        }
        if is_list {
            self.inventory.kinds.extend(list_kind(&fields));
        } else if let Some(object) = watched {
            let is_gone = fields.get("type").and_then(Value::as_str) == Some("DELETED");
            let change = if is_gone { Change::Gone } else { Change::Present };
            self.inventory.add_item(self.place, object, None, change);
        } else {
            let object = RawItem::deserialize(Value::Object(fields)).map_err(A::Error::custom)?;
            self.inventory.add_item(self.place, object, None, Change::Present);
        }
        Ok(())
    }
}

/// `Pod` of a `PodList`; `None` of a plain `List`.
fn list_kind(fields: &Map<String, Value>) -> Option<String> {
    let kind = fields.get("kind")?.as_str()?.strip_suffix("List")?;
    (!kind.is_empty()).then(|| kind.to_owned())
}

/// The items of a list; `null` is an empty one.
struct Items<'a> {
    inventory: &'a mut Inventory,
    place: &'a str,
    kind: Option<String>,
}

impl<'de> DeserializeSeed<'de> for Items<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a list of objects")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
        while let Some(item) = sequence.next_element::<RawItem>()? {
            self.inventory.add_item(self.place, item, self.kind.as_deref(), Change::Present);
        }
        Ok(())
    }
}
