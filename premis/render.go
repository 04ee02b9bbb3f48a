package premis

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// object renders an object in the order of the schema's types intellectualEntity, representation
// and file.
func (e *emitter) object(o *Object) {
	kind := ""
	switch o.Category {
	case IntellectualEntity:
		kind = "intellectualEntity"
	case Representation:
		kind = "representation"
	case File:
		kind = "file"
	default:
		e.refuse("object", strconv.Itoa(int(o.Category)), "unknown category")
		return
	}
	if (o.Category == File) != (o.Characteristics != nil) {
		e.refuse("objectCharacteristics", kind, "required for a file, forbidden for other objects")
		return
	}
	if o.Category == IntellectualEntity && len(o.Storage) > 0 {
		e.refuse("storage", kind, "forbidden for an intellectual entity")
		return
	}
	e.nested("object", func() {
		e.identifiers("objectIdentifier", o.IDs, 1)
		if o.PreservationLevel != "" {
			e.nested("preservationLevel", func() { e.leaf("preservationLevelValue", o.PreservationLevel) })
		}
		name, encoded := carriableName(o.OriginalName)
		if encoded {
			e.nested("significantProperties", func() {
				e.leaf("significantPropertiesType", "originalName encoding")
				e.leaf("significantPropertiesValue", "percent-encoded")
			})
		}
		if o.Characteristics != nil {
			e.characteristics(o.Characteristics)
		}
		e.optional("originalName", name)
		for _, s := range o.Storage {
			e.storage(s)
		}
		for _, r := range o.Relationships {
			e.relationship(r)
		}
		e.identifiers("linkingEventIdentifier", o.Events, 0)
		e.identifiers("linkingRightsStatementIdentifier", o.Rights, 0)
	}, attr{"xsi:type", kind})
}

func (e *emitter) characteristics(c *Characteristics) {
	e.nested("objectCharacteristics", func() {
		for _, f := range c.Fixity {
			e.nested("fixity", func() {
				name, uri := HashFunction(f.Algorithm)
				e.leaf("messageDigestAlgorithm", name, vocabulary("cryptographicHashFunctions", hashFunctions, uri)...)
				e.leaf("messageDigest", f.Digest)
				e.optional("messageDigestOriginator", f.Originator)
			})
		}
		if c.Size >= 0 {
			e.leaf("size", strconv.FormatInt(c.Size, 10))
		}
		formats := c.Formats
		if len(formats) == 0 {
			formats = []Format{{Name: "unknown"}}
		}
		for _, f := range formats {
			e.format(f)
		}
		if y := c.Modified.UTC().Year(); !c.Modified.IsZero() && y >= 1 && y <= 9999 {
			e.nested("creatingApplication", func() { e.leaf("dateCreatedByApplication", c.Modified.UTC().Format(time.RFC3339Nano)) })
		}
	})
}

func (e *emitter) format(f Format) {
	switch {
	case f.Name == "" && f.Registry == "":
		e.refuse("format", "", "a name or a registry is required")
	case f.Name == "" && f.Version != "":
		e.refuse("formatVersion", f.Version, "a version needs the format's name")
	case f.Registry == "" && (f.Key != "" || f.Role != ""):
		e.refuse("formatRegistryKey", f.Key, "a key or a role needs a registry")
	}
	e.nested("format", func() {
		if f.Name != "" {
			e.nested("formatDesignation", func() {
				e.leaf("formatName", f.Name)
				e.optional("formatVersion", f.Version)
			})
		}
		if f.Registry != "" {
			e.nested("formatRegistry", func() {
				e.leaf("formatRegistryName", f.Registry)
				e.leaf("formatRegistryKey", f.Key)
				e.optional("formatRegistryRole", f.Role)
			})
		}
		e.each("formatNote", f.Notes)
	})
}

func (e *emitter) storage(s Storage) {
	if s == (Storage{}) {
		e.refuse("storage", "", "a location or a medium is required")
		return
	}
	e.nested("storage", func() {
		if s.Location != (Identifier{}) {
			e.identifier("contentLocation", s.Location)
		}
		e.optional("storageMedium", s.Medium)
	})
}

func (e *emitter) relationship(r Relationship) {
	e.nested("relationship", func() {
		e.leaf("relationshipType", r.Type)
		e.leaf("relationshipSubType", r.SubType)
		e.identifiers("relatedObjectIdentifier", r.Objects, 1)
		e.identifiers("relatedEventIdentifier", r.Events, 0)
	})
}

// event renders an event in the order of the schema's eventComplexType.
func (e *emitter) event(v *Event) {
	if v.Time.IsZero() {
		e.refuse("eventDateTime", "", "a value is required")
		return
	}
	if y := v.Time.UTC().Year(); y < 1 || y > 9999 {
		e.refuse("eventDateTime", v.Time.String(), "the year must have four digits")
		return
	}
	e.nested("event", func() {
		e.identifier("eventIdentifier", v.ID)
		e.leaf("eventType", string(v.Type), vocabulary("eventType", eventTypes, v.Type.URI())...)
		e.leaf("eventDateTime", v.Time.UTC().Format(time.RFC3339Nano))
		for _, d := range v.Details {
			e.nested("eventDetailInformation", func() { e.leaf("eventDetail", d) })
		}
		if v.Outcome != "" || len(v.Notes) > 0 {
			e.nested("eventOutcomeInformation", func() {
				e.optional("eventOutcome", string(v.Outcome), vocabulary("eventOutcome", eventOutcomes, v.Outcome.URI())...)
				for _, n := range v.Notes {
					e.nested("eventOutcomeDetail", func() { e.leaf("eventOutcomeDetailNote", n) })
				}
			})
		}
		for _, l := range v.Agents {
			e.identifier("linkingAgentIdentifier", l.ID, func() {
				for _, role := range l.Roles {
					e.leaf("linkingAgentRole", role, vocabulary("eventRelatedAgentRole", agentRoles, agentRoleURI(role))...)
				}
			})
		}
		for _, l := range v.Objects {
			e.identifier("linkingObjectIdentifier", l.ID, func() { e.each("linkingObjectRole", l.Roles) })
		}
	})
}

// agent renders an agent in the order of the schema's agentComplexType.
func (e *emitter) agent(a *Agent) {
	e.nested("agent", func() {
		e.identifiers("agentIdentifier", a.IDs, 1)
		e.each("agentName", a.Names)
		e.leaf("agentType", string(a.Type), vocabulary("agentType", agentTypes, a.Type.URI())...)
		e.optional("agentVersion", a.Version)
		e.each("agentNote", a.Notes)
	})
}

// rights renders a rights statement in the order of the schema's rightsStatementComplexType.
func (e *emitter) rights(r *Rights) {
	document := func(of string) {
		if r.Document != "" {
			e.identifier(of+"DocumentationIdentifier", Identifier{Type: "URI", Value: r.Document})
		}
	}
	e.nested("rights", func() {
		e.nested("rightsStatement", func() {
			e.identifier("rightsStatementIdentifier", r.ID)
			e.leaf("rightsBasis", r.Basis, vocabulary("rightsBasis", rightsBases, rightsBasisURI(r.Basis))...)
			switch r.Basis {
			case "copyright":
				e.nested("copyrightInformation", func() {
					e.leaf("copyrightStatus", r.Status, vocabulary("copyrightStatus", copyrightStatuses, copyrightStatusURI(r.Status))...)
					e.leaf("copyrightJurisdiction", r.Jurisdiction)
					e.optional("copyrightNote", r.Note)
					document("copyright")
				})
			case "license":
				if r.Document == "" && r.Note == "" {
					e.refuse("licenseTerms", "", "a license needs its terms or an address")
				}
				e.nested("licenseInformation", func() {
					document("license")
					e.optional("licenseTerms", r.Note)
				})
			case "statute":
				e.nested("statuteInformation", func() {
					e.leaf("statuteJurisdiction", r.Jurisdiction)
					e.leaf("statuteCitation", r.Note)
					document("statute")
				})
			case "other":
				e.nested("otherRightsInformation", func() {
					document("otherRights")
					e.leaf("otherRightsBasis", r.Note)
				})
			default:
				e.refuse("rightsBasis", r.Basis, "unknown basis")
			}
			for _, g := range r.Granted {
				e.nested("rightsGranted", func() {
					e.leaf("act", g.Act)
					e.optional("restriction", g.Restriction)
					if g.Until != "" {
						e.nested("termOfRestriction", func() {
							e.leaf("startDate", g.From)
							e.leaf("endDate", g.Until)
						})
					}
				})
			}
			e.identifiers("linkingObjectIdentifier", r.Objects, 0)
		})
	})
}

// vocabulary returns the attributes that name a value's vocabulary. A value without a URI has none.
func vocabulary(authority, authorityURI, uri string) []attr {
	if uri == "" {
		return nil
	}
	return []attr{{"authority", authority}, {"authorityURI", authorityURI}, {"valueURI", uri}}
}

// carriableName returns a name as XML can carry it. encoded is true if that is percent-encoded. A
// name of white space only is encoded as well, since XML readers would take it for empty.
func carriableName(name string) (text string, encoded bool) {
	blank := name != "" && strings.TrimSpace(name) == ""
	if inXML(name) && !blank {
		return name, false
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, n := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && n == 1 || uncarriable(r) || r == '%' || blank {
			for _, c := range []byte(name[i : i+n]) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		} else {
			b.WriteString(name[i : i+n])
		}
		i += n
	}
	return b.String(), true
}
