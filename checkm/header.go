package checkm

import (
	"net/url"
	"strings"
)

// header holds the lines before the first row.
type header struct {
	declared   bool
	profile    bool              // there was a #%profile line, valid or not
	kind       Kind              // of the #%profile line
	prefixes   map[string]string // URIs by their prefix, such as "nfo:"
	fields     []string
	fieldsLine int
	closed     bool // rows have begun
}

// directive is a line that begins with #%.
type directive struct {
	word   string
	rest   string   // as written
	values []string // rest split at pipes, without the empty part before the first one
	piped  bool     // a pipe follows the word, as it should
}

// parseDirective parses a line. It returns false for a plain comment.
func parseDirective(text string) (directive, bool) {
	body, ok := strings.CutPrefix(text, "#%")
	if !ok {
		return directive{}, false
	}
	end := strings.IndexAny(body, " \t\v\f|")
	if end < 0 {
		end = len(body)
	}
	d := directive{word: body[:end], rest: trimSpace(body[end:])}
	if d.rest == "" {
		return d, true
	}
	after, piped := strings.CutPrefix(d.rest, "|")
	d.piped = piped
	for value := range strings.SplitSeq(after, "|") {
		d.values = append(d.values, trimSpace(value))
	}
	return d, true
}

func (d directive) isEOF() bool      { return strings.EqualFold(d.word, "eof") }
func (d directive) isDeclared() bool { return strings.HasPrefix(d.word, "checkm") }
func (d directive) isFields() bool   { return d.word == "fields" || d.word == "columns" }

// profileURI returns the URI of a #%profile line.
func (d directive) profileURI() string {
	if len(d.values) == 0 {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(d.values[0], "<"), ">")
}

// fieldNames returns the names of a #%fields line. Old writers put spaces between them.
func (d directive) fieldNames() []string {
	if len(d.values) == 1 {
		return strings.Fields(d.values[0])
	}
	return d.values
}

// header processes a header line.
func (r *Reader) header(num int, d directive) {
	known := d.isDeclared() || d.isFields() || d.word == "profile" || d.word == "prefix"
	switch {
	case !known:
		r.warn(num, RuleHeader, "#%checkm_0.7, #%profile, #%prefix, #%fields or #%eof, in lower case", "#%"+d.word, "the line is ignored")
	case r.head.closed:
		r.warn(num, RuleHeaderLate, "header lines before the first row", "#%"+d.word, "the line is ignored; move it up")
	case d.isDeclared():
		r.head.declared = true
		if "#%"+d.word != declaration || d.rest != "" {
			r.warn(num, RuleHeader, declaration, "#%"+trimSpace(d.word+" "+d.rest), "the manifest is read as version 0.7")
		}
	case d.word == "prefix":
		r.prefix(num, d)
	case d.word == "profile":
		r.profile(num, d)
	case r.head.fields != nil:
		r.warn(num, RuleHeader, "one #%fields line", "another", "the first one counts")
	default:
		r.head.fields, r.head.fieldsLine = d.fieldNames(), num
	}
}

// prefix processes a prefix line: "p: | URI", or the older form "p:<URI>".
func (r *Reader) prefix(num int, d directive) {
	if r.head.prefixes == nil {
		r.head.prefixes = map[string]string{}
	}
	if len(d.values) == 0 {
		return
	}
	name, uri, ok := strings.Cut(d.values[0], ":")
	if len(d.values) > 1 {
		uri = d.values[1]
	}
	uri = strings.TrimSuffix(strings.TrimPrefix(trimSpace(uri), "<"), ">")
	name += ":"
	if !ok || uri == "" {
		r.warn(num, RuleHeader, "#%prefix | nfo: | "+nfoPrefix, d.rest, "the line is ignored")
		return
	}
	if known(name) && !ourVocabulary(uri) {
		r.warn(num, RuleHeader, "the URI of "+name, uri, "the columns are known by their names all the same")
	}
	r.head.prefixes[name] = uri
}

// known reports whether the meaning of a prefix is fixed, whatever a manifest says.
func known(prefix string) bool { return prefix == "mrt:" || prefix == "nfo:" || prefix == "nie:" }

// ourVocabulary reports whether the URI is one of the vocabularies that column names come from.
// Merritt has had several since 2010.
func ourVocabulary(uri string) bool {
	u, err := url.Parse(uri)
	return err == nil && (u.Host == "www.semanticdesktop.org" || strings.HasSuffix(u.Host, ".cdlib.org"))
}

func (r *Reader) profile(num int, d directive) {
	uri := d.profileURI()
	if r.head.profile {
		r.warn(num, RuleProfileRepeated, "one #%profile line", uri, "the first one counts")
		return
	}
	r.head.profile = true
	if !d.piped {
		r.warn(num, RuleHeader, "a pipe after #%profile", d.rest, "write #%profile | URI")
	}
	kind, ok := KindOf(uri)
	given := r.opts.Kind
	switch {
	case !ok:
		r.condemn(num, RuleProfileUnknown, Object.ProfileURI()+" or one of its kin", uri, "copy the profile from the guide: it is an http URI, and case counts")
		return
	case given == Unknown || given == kind:
	case sameColumns(given, kind):
		r.warn(num, RuleProfileMismatch, given.ProfileURI(), uri, "the rows are taken for those of a "+string(given))
	default:
		r.condemn(num, RuleProfileMismatch, given.ProfileURI(), uri, "submit it as "+string(kind)+", or correct the profile")
	}
	r.head.kind = kind
}

// begin ends the header and sets the columns. num is the line of the first row, or the last line if
// there is none.
func (r *Reader) begin(num int) {
	h := &r.head
	if h.closed {
		return
	}
	h.closed = true
	r.kind = r.opts.Kind
	if h.kind != Unknown && !sameColumns(r.kind, h.kind) {
		r.kind = h.kind // report the faults of rows in their own terms
	}
	if !h.profile && r.kind == Unknown {
		r.condemn(num, RuleNoProfile, "a line #%profile | "+Object.ProfileURI(), "none before the first row", "add it, or give the type when you submit")
	}
	for _, m := range []struct {
		there bool
		what  string
	}{{h.declared, declaration}, {h.prefixes != nil, "#%prefix"}, {h.fields != nil, "#%fields"}} {
		if !m.there {
			r.warn(num, RuleHeaderMissing, m.what, "no such line before the first row", "add it; the columns are taken in the order of the profile")
		}
	}
	r.judge = newJudge(r.kind)
	if h.fields != nil {
		r.layout()
	}
}

// layout applies the #%fields line.
func (r *Reader) layout() {
	num := r.head.fieldsLine
	cols, unknown, twice := fieldColumns(r.kind, r.head.fields, r.head.prefixes)
	for _, name := range unknown {
		r.warn(num, RuleFields, "the name of a column", name, "the profile's own column of that position is taken, or none if columns are moved")
	}
	for _, name := range twice {
		r.condemn(num, RuleFields, "each column once", name, "give every column its own name")
	}
	if len(twice) > 0 {
		return
	}
	l := newLayout(cols)
	if key := r.kind.key(); l.at[key] < 0 {
		r.condemn(num, RuleFields, "a column "+key.field(), strings.Join(r.head.fields, " | "), "name all columns in the order of the rows")
		return
	}
	// Merritt adds the remaining columns of its profile to a short #%fields line.
	if standard := newLayout(r.kind.columns()); l.width < standard.width && l.agrees(standard) {
		l = standard
	}
	r.judge.layout = l
}
