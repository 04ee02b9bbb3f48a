package page

import (
	"bytes"
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/lang"
	"github.com/holdfast/holdfast/web/webserver"
	"github.com/holdfast/holdfast/web/wire"
)

// refusedForm is in the context of a request for the page of a form that was refused.
type refusedForm struct {
	form    *http.Request // that was sent
	problem *wire.Problem
}

// refusedMark is the key of a *refusedForm.
type refusedMark struct{}

// selectors are the fields of forms by which the page of a form knows what it is about. What people
// type is not among them: addresses are kept in logs and histories.
var selectors = []string{"counted", "act", "do", "decision", "from", "version", "scope", "next", "q", "col", "order", "all", "id", "after", "worker"}

// Home says which page has the forms that are posted below a path, where no page has that path.
func (s *Site) Home(path, home string) { s.homes[path] = home }

// Wrong is the error of a field of a form whose value cannot be used. text says what is wrong with it,
// and is in the viewer's language.
func Wrong(field, text string) error {
	return Told(http.StatusUnprocessableEntity, wire.CodeInvalid, text, wire.Fault{Location: "body." + field, Message: text})
}

// refuse answers a form that was not carried out: with the page that has the form, what was typed and
// what is wrong; or, if that page is not there any more, with the nearest one above it.
func (s *Site) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var p *wire.Problem
	if !errors.As(err, &p) || !answersForm(p) {
		s.Fail(w, r, err)
		return
	}
	if p.Status == http.StatusNotFound && len(p.Faults) == 0 {
		p = Told(p.Status, p.Code, s.Texts(r).T("nothing was done: what the form is about is not there any more. Somebody has removed it since the form was shown, perhaps in another tab. This page shows what is there now"))
	}
	for _, at := range s.formPages(r) {
		if text, ok := s.shown(r, at, p); ok {
			send(w, text, p.Status, true)
			return
		}
	}
	s.Fail(w, r, p)
}

// answersForm reports whether a problem is one that a reader of the form can do something about.
func answersForm(p *wire.Problem) bool {
	switch p.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusInternalServerError:
		return p.Code == wire.CodeMailRefused || errors.Is(p, registry.ErrSamePerson)
	}
	return true
}

// formPages are the addresses at which the form of a request may be, the nearest first: its own one,
// and those above it.
func (s *Site) formPages(r *http.Request) (all []url.URL) {
	query := r.URL.Query()
	for _, name := range selectors {
		if values, ok := r.PostForm[name]; ok {
			query[name] = values
		}
	}
	if r.PostForm.Has("scope") { // of holds and limits; other keys are of no page, or secret
		query["key"] = r.PostForm["key"]
	}
	all = append(all, url.URL{Path: r.URL.Path, RawQuery: query.Encode()})
	for path := r.URL.Path; path != ""; path = path[:strings.LastIndex(path, "/")] {
		if home, ok := s.homes[path]; ok {
			all = append(all, url.URL{Path: home, RawQuery: query.Encode()})
		} else if path != r.URL.Path {
			all = append(all, url.URL{Path: path})
		}
	}
	return all
}

// shown returns a page as the sender of a form sees it now, with why the form was refused; false if there
// is none.
func (s *Site) shown(r *http.Request, at url.URL, p *wire.Problem) (text []byte, ok bool) {
	if _, pattern := s.mux.Handler(&http.Request{Method: http.MethodGet, URL: &at, Host: r.Host}); !s.paths[strings.TrimPrefix(pattern, "GET ")] {
		return nil, false
	}
	request, err := http.NewRequestWithContext(context.WithValue(r.Context(), refusedMark{}, &refusedForm{r, p}), http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return nil, false
	}
	request.Header["Cookie"], request.Header["Accept-Language"] = r.Header["Cookie"], r.Header["Accept-Language"]
	answer := webserver.NewRecording()
	s.mux.ServeHTTP(answer, request)
	return answer.Body.Bytes(), answer.Status == http.StatusOK
}

// tellRefusal puts a refusal into a page, below its heading, with each fault beside its field of the form
// that was sent. empty says that the page does not have what was typed.
func (v *view) tellRefusal(r *http.Request, text []byte, p *wire.Problem, empty bool) ([]byte, error) {
	root, err := html.Parse(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	left := *p
	var fields []fieldFaults
	if form := sentForm(root, r); form != nil {
		if empty {
			fill(form, r.PostForm)
		}
		left.Faults = nil
		for _, fault := range p.Faults {
			control := controlOf(form, fault.Location)
			if control == nil {
				left.Faults = append(left.Faults, fault)
				continue
			}
			said := v.fault(fault)
			if p.Worded {
				said = template.HTML(template.HTMLEscapeString(lang.Sentence(fault.Message))) //nolint:gosec // escaped
			}
			i := slices.IndexFunc(fields, func(f fieldFaults) bool { return f.control == control })
			if i < 0 {
				i, fields = len(fields), append(fields, fieldFaults{control: control})
			}
			if !slices.Contains(fields[i].said, said) {
				fields[i].said = append(fields[i].said, said)
			}
			fields[i].told = p.Worded && fault.Message == p.Detail
		}
		for _, f := range fields {
			if err := f.mark(); err != nil {
				return nil, err
			}
		}
		if first := find(form, func(n *html.Node) bool { return attribute(n, "aria-invalid") == "true" }); first != nil {
			setAttribute(first, "autofocus", "")
		}
		for at := form.Parent; at != nil; at = at.Parent {
			if at.DataAtom == atom.Details {
				setAttribute(at, "open", "")
			}
		}
	}
	if err := v.tell(root, &left, fields); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = html.Render(&out, root)
	return out.Bytes(), err
}

// tell puts a refusal below the heading of a page, with links to the fields that are at fault.
func (v *view) tell(root *html.Node, p *wire.Problem, fields []fieldFaults) error {
	t, err := v.template("problem")
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := t.ExecuteTemplate(&text, "refused", p); err != nil {
		return err
	}
	main := find(root, func(n *html.Node) bool { return n.DataAtom == atom.Main })
	if main == nil {
		return errors.New("a page has no main part")
	}
	box, err := html.ParseFragment(&text, main)
	if err != nil {
		return err
	}
	if before := find(main, func(n *html.Node) bool { return attribute(n, "role") == "alert" && n.DataAtom == atom.Div }); before != nil {
		before.Parent.RemoveChild(before) // what the page expected of the form
	}
	at, next := main, main.FirstChild
	if heading := find(main, func(n *html.Node) bool { return n.DataAtom == atom.H1 }); heading != nil {
		at, next = heading.Parent, heading.NextSibling
	}
	for _, n := range box {
		at.InsertBefore(n, next)
	}
	if len(fields) == 0 {
		return nil
	}
	list := element(atom.Ul)
	for _, f := range fields {
		entry, err := f.entry()
		if err != nil {
			return err
		}
		list.AppendChild(entry)
	}
	words := find(box[0], func(n *html.Node) bool { return n.DataAtom == atom.P })
	box[0].InsertBefore(list, words.NextSibling)
	return nil
}

// sentForm finds the form of a page that a request sent; nil if it is not there. Forms to the same
// address differ in their hidden fields or buttons.
func sentForm(root *html.Node, r *http.Request) *html.Node {
	return find(root, func(n *html.Node) bool {
		if n.DataAtom != atom.Form || !strings.EqualFold(attribute(n, "method"), http.MethodPost) {
			return false
		}
		action, err := url.Parse(attribute(n, "action"))
		if err != nil || action.Path != r.URL.Path && action.Path != "" {
			return false
		}
		fixed := map[string][]string{} // what it can send besides what people type
		for c := range n.Descendants() {
			name := attribute(c, "name")
			if name != "" && name != "key" && name != "version" && (c.DataAtom == atom.Button || attribute(c, "type") == "hidden") {
				fixed[name] = append(fixed[name], attribute(c, "value"))
			}
		}
		for name, values := range fixed {
			if slices.Contains(selectors, name) && r.PostForm.Has(name) && !slices.Contains(values, r.PostForm.Get(name)) {
				return false
			}
			if (name == "name" || name == "id" || name == "origin") && !slices.Contains(values, r.PostForm.Get(name)) { // of the row of a list
				return false
			}
		}
		return true
	})
}

// fill puts into a form what was typed. Hidden fields stay as they are now, and passwords empty.
func fill(form *html.Node, typed url.Values) {
	nth := map[string]int{}
	for c := range form.Descendants() {
		name := attribute(c, "name")
		values := typed[name]
		if name == "" || c.Type != html.ElementNode {
			continue
		}
		switch kind := attribute(c, "type"); {
		case c.DataAtom == atom.Select:
			choose(c, values)
		case kind == "checkbox" || kind == "radio":
			setMark(c, "checked", slices.Contains(values, attribute(c, "value")))
		case nth[name] >= len(values):
		case c.DataAtom == atom.Textarea:
			for c.FirstChild != nil {
				c.RemoveChild(c.FirstChild)
			}
			c.AppendChild(&html.Node{Type: html.TextNode, Data: values[nth[name]]})
			nth[name]++
		case c.DataAtom == atom.Input && !slices.Contains([]string{"hidden", "submit", "password", "file"}, kind):
			setAttribute(c, "value", values[nth[name]])
			nth[name]++
		}
	}
}

// choose selects the option of one of the values, if there is one.
func choose(list *html.Node, values []string) {
	wanted := func(o *html.Node) bool {
		return o.DataAtom == atom.Option && slices.Contains(values, attribute(o, "value"))
	}
	if find(list, wanted) == nil {
		return
	}
	for o := range list.Descendants() {
		if o.DataAtom == atom.Option {
			setMark(o, "selected", wanted(o))
		}
	}
}

// controlOf finds the field of a form that a fault is about, such as reason for body.reason; nil if it
// has none. A field whose name differs from that of the API has the latter as data-field.
func controlOf(form *html.Node, location string) *html.Node {
	part, path, ok := strings.Cut(location, ".")
	if !ok || path == "" || !slices.Contains([]string{"body", "query", "path"}, part) { // such as a file of a payload
		return nil
	}
	path, _, _ = strings.Cut(path, "[")
	first, _, _ := strings.Cut(path, ".")
	for _, name := range []string{path, path[strings.LastIndex(path, ".")+1:], first} {
		control := find(form, func(n *html.Node) bool {
			return name != "" && (attribute(n, "name") == name || attribute(n, "data-field") == name) && attribute(n, "type") != "hidden" && (n.DataAtom == atom.Input || n.DataAtom == atom.Select || n.DataAtom == atom.Textarea)
		})
		if control != nil {
			return control
		}
	}
	return nil
}

// find returns the first descendant that is wanted; nil if there is none.
func find(root *html.Node, wanted func(*html.Node) bool) *html.Node {
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && wanted(n) {
			return n
		}
	}
	return nil
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// setAttribute sets an attribute.
func setAttribute(n *html.Node, name, value string) {
	setMark(n, name, false)
	n.Attr = append(n.Attr, html.Attribute{Key: name, Val: value})
}

// setMark sets an attribute without a value, or removes it.
func setMark(n *html.Node, name string, on bool) {
	n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
	if on {
		n.Attr = append(n.Attr, html.Attribute{Key: name})
	}
}
