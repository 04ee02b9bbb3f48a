package uitest

import (
	"bytes"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// Visitor is a browser without scripts that has signed in: it keeps cookies, sends forms and follows
// redirects.
type Visitor struct {
	t      testing.TB
	base   string
	client *http.Client
	last   func() Visited // sends the last form again
}

// Visit signs in with a token's secret. The server stops when the test ends.
func (s *Server) Visit(t testing.TB, secret string) *Visitor {
	t.Helper()
	server := httptest.NewServer(s.Handler)
	t.Cleanup(server.Close)
	return NewVisitor(t, server.URL, secret)
}

// NewVisitor signs in with a token's secret at a server that runs.
func NewVisitor(t testing.TB, base, secret string) *Visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must(t, err)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	v := &Visitor{t: t, base: base, client: &http.Client{Jar: jar, Transport: transport}}
	if p, _ := v.Send(v.Open("/login"), "/login", url.Values{"token": {secret}}); strings.HasPrefix(p.Path, "/login") {
		t.Fatalf("signing in leads to %s:\n%s", p.Path, p.Main())
	}
	return v
}

// For makes the visitor tell its failures to another test, such as a subtest.
func (v *Visitor) For(t testing.TB) { v.t = t }

// Visited is a page as it came.
type Visited struct {
	Status int
	Path   string // its address, with the query
	Text   string
}

// Main is the part of the page that is not the same on all pages.
func (p Visited) Main() string {
	_, text, _ := strings.Cut(p.Text, "<main ")
	text, _, _ = strings.Cut(text, "</main>")
	return text
}

// Open loads a page, and follows redirects.
func (v *Visitor) Open(path string) Visited {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.base+path, http.NoBody)
	must(v.t, err)
	return v.ask(r)
}

func (v *Visitor) ask(r *http.Request) Visited {
	v.t.Helper()
	answer, err := v.client.Do(r)
	must(v.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(v.t, err)
	return Visited{answer.StatusCode, answer.Request.URL.RequestURI(), string(text)}
}

// Send fills in the form of a page that is posted to an address, and sends it. The fields that it
// sets must be on the form: names of files have their content as value, and the button's name its
// value. It fails the test if a field stays empty that must not. It returns the next page, and all
// that the form sent.
func (v *Visitor) Send(p Visited, action string, set url.Values) (next Visited, sent url.Values) {
	v.t.Helper()
	var why []string
	for _, f := range FormsOf(v.t, p) {
		if f.Method != http.MethodPost || f.Action != action {
			continue
		}
		values, err := f.fill(set)
		if err != "" {
			why = append(why, err)
			continue
		}
		v.last = func() Visited {
			v.t.Helper()
			body, kind := f.encode(v.t, values)
			r, failed := http.NewRequestWithContext(v.t.Context(), http.MethodPost, v.base+action, body)
			must(v.t, failed)
			r.Header.Set("Content-Type", kind)
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			return v.ask(r)
		}
		return v.last(), values
	}
	v.t.Fatalf("%s (%d) has no form to %s that takes %v: %s\n%s", p.Path, p.Status, action, set, strings.Join(why, "; "), p.Main())
	return Visited{}, nil
}

// Resend sends the last form once more, as a second click or a page that is loaded again does.
func (v *Visitor) Resend() Visited {
	v.t.Helper()
	return v.last()
}

// Form is a form of a page.
type Form struct {
	Method, Action string
	Fields         url.Values // what it sends if nobody changes it, without a button
	Buttons        url.Values // by name; one without a name is ""
	Wrong          []string   // fields that are marked as wrong
	Secret         []string   // fields that do not show what is typed

	typed     []string
	controls  map[string]bool
	required  []string
	files     map[string]bool
	multipart bool
}

// parsed returns a page's root, and the address that its own addresses are relative to.
func parsed(t testing.TB, p Visited) (*html.Node, *url.URL) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(p.Text))
	must(t, err)
	at, err := url.Parse(p.Path)
	must(t, err)
	return root, at
}

// FormsOf returns a page's forms, in their order.
func FormsOf(t testing.TB, p Visited) (all []Form) {
	t.Helper()
	root, at := parsed(t, p)
	for n := range root.Descendants() {
		if n.Data != "form" || n.Type != html.ElementNode {
			continue
		}
		to, err := at.Parse(attribute(n, "action"))
		must(t, err)
		f := Form{
			Method: strings.ToUpper(attribute(n, "method")), Action: to.RequestURI(), Fields: url.Values{}, Buttons: url.Values{},
			controls: map[string]bool{}, files: map[string]bool{}, multipart: attribute(n, "enctype") == "multipart/form-data",
		}
		for c := range n.Descendants() {
			f.add(c)
		}
		all = append(all, f)
	}
	return all
}

// Typed are the fields that people type into, without files.
func (f *Form) Typed() []string { return f.typed }

// Required are the fields that must not be empty.
func (f *Form) Required() []string { return f.required }

// Has reports whether one of the form's buttons sends the same as one whose values these are.
func (f *Form) Has(values url.Values) bool {
	return slices.ContainsFunc(f.Sends(), func(sends url.Values) bool {
		return sends.Get("do") == values.Get("do") && sends.Get("act") == values.Get("act")
	})
}

// Sends is what the form sends by each of its buttons, if nobody changes it.
func (f *Form) Sends() (all []url.Values) {
	for name, values := range f.Buttons {
		for _, value := range values {
			sends := maps.Clone(f.Fields)
			if name != "" {
				sends.Set(name, value)
			}
			all = append(all, sends)
		}
	}
	return all
}

// LinksOf returns where a page's links lead, without fragments.
func LinksOf(t testing.TB, p Visited) (all []string) {
	t.Helper()
	root, at := parsed(t, p)
	for n := range root.Descendants() {
		if n.Data == "a" && has(n, "href") {
			to, err := at.Parse(attribute(n, "href"))
			must(t, err)
			to.Fragment = ""
			all = append(all, to.String())
		}
	}
	return all
}

func (f *Form) add(c *html.Node) {
	name, value := attribute(c, "name"), attribute(c, "value")
	if c.Type != html.ElementNode || has(c, "disabled") {
		return
	}
	switch kind := attribute(c, "type"); {
	case c.Data == "button" && kind != "button":
		f.Buttons.Add(name, value)
		return
	case name == "" || c.Data != "input" && c.Data != "select" && c.Data != "textarea":
		return
	case kind == "checkbox" || kind == "radio":
		if has(c, "checked") {
			f.Fields.Add(name, value)
		}
	case kind == "file":
		f.files[name] = true
	case c.Data == "select":
		first := true
		for o := range c.Descendants() {
			if o.Data == "option" && (first || has(o, "selected")) {
				f.Fields.Set(name, attribute(o, "value"))
				first = false
			}
		}
	case c.Data == "textarea":
		f.Fields.Add(name, textOf(c))
	default:
		f.Fields.Add(name, value)
	}
	if kind := attribute(c, "type"); c.Data == "textarea" || c.Data == "input" && !slices.Contains([]string{"hidden", "checkbox", "radio", "file", "submit"}, kind) {
		f.typed = append(f.typed, name)
		if kind == "password" {
			f.Secret = append(f.Secret, name)
		}
	}
	if attribute(c, "aria-invalid") == "true" {
		f.Wrong = append(f.Wrong, name)
	}
	f.controls[name] = true
	if has(c, "required") {
		f.required = append(f.required, name)
	}
}

// fill returns what the form sends, or why it cannot.
func (f *Form) fill(set url.Values) (values url.Values, why string) {
	values = url.Values{}
	for name, v := range f.Fields {
		values[name] = v
	}
	pressed := f.Buttons.Has("")
	for name, v := range set {
		button := slices.Contains(f.Buttons[name], v[0])
		if !f.controls[name] && !button {
			return nil, "there is no field " + name
		}
		pressed = pressed || button
		values[name] = v
	}
	if !pressed {
		return nil, "no button is pressed"
	}
	for _, name := range f.required {
		if values.Get(name) == "" {
			return nil, "the field " + name + " is empty"
		}
	}
	return values, ""
}

// encode writes the body of a form.
func (f *Form) encode(t testing.TB, values url.Values) (body io.Reader, kind string) {
	t.Helper()
	if !f.multipart {
		return strings.NewReader(values.Encode()), "application/x-www-form-urlencoded"
	}
	var text bytes.Buffer
	w := multipart.NewWriter(&text)
	for name, all := range values {
		for _, value := range all {
			if f.files[name] {
				part, err := w.CreateFormFile(name, name+".txt")
				must(t, err)
				_, err = io.WriteString(part, value)
				must(t, err)
				continue
			}
			must(t, w.WriteField(name, value))
		}
	}
	must(t, w.Close())
	return &text, w.FormDataContentType()
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(n *html.Node, name string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
}

func textOf(n *html.Node) string {
	var text strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			text.WriteString(c.Data)
		}
	}
	return text.String()
}
