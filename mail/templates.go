package mail

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io/fs"
	"os"
	"slices"
	"strings"
	"text/template"
	"time"
)

//go:embed template
var ours embed.FS

// Templates render mails. Each [Kind] has a KIND.txt, which also defines the template "subject",
// and a KIND.html, in the languages of text/template and html/template. Values are escaped in HTML.
// batch.txt and batch.html define the template "batch" for use in the others.
type Templates struct {
	text map[Kind]*template.Template
	html map[Kind]*htmltemplate.Template
}

// shared is the template that other templates use.
const shared = "batch"

// functions are the functions for templates, in addition to Go's own.
var functions = template.FuncMap{
	"time": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") },
	"join": func(list []string) string { return strings.Join(list, ", ") },
	"line": oneLine, // a text from people or servers, on one line
	"plain": func(n int64, one, many string) string {
		return fmt.Sprintf("%d %s", n, map[bool]string{true: one, false: many}[n == 1])
	},
}

// LoadTemplates loads the built-in templates. Files of the same name in folder replace them; ""
// means no folder. It tries all templates with sample data. The error joins all faults: unknown
// file names, unreadable files, and templates that render no mail.
func LoadTemplates(folder string) (*Templates, error) {
	t := &Templates{text: map[Kind]*template.Template{}, html: map[Kind]*htmltemplate.Template{}}
	var theirs fs.FS
	var wrong []error
	if folder != "" {
		theirs = os.DirFS(folder)
		wrong = append(wrong, checkNames(theirs))
	}
	for _, kind := range Kinds() {
		err := t.load(theirs, kind)
		if err == nil {
			err = t.try(kind)
		}
		wrong = append(wrong, err)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return t, nil
}

// load loads the templates of a kind.
func (t *Templates) load(theirs fs.FS, kind Kind) (err error) {
	text, markup := template.New(string(kind)+".txt").Funcs(functions), htmltemplate.New(string(kind)+".html").Funcs(functions)
	for _, name := range []string{shared, string(kind)} {
		source, err := read(theirs, name+".txt")
		if err == nil {
			_, err = within(text, name+".txt", text.New).Parse(source)
		}
		if err != nil {
			return fmt.Errorf("mail template %s.txt: %w", name, err)
		}
		if source, err = read(theirs, name+".html"); err == nil {
			_, err = within(markup, name+".html", markup.New).Parse(source)
		}
		if err != nil {
			return fmt.Errorf("mail template %s.html: %w", name, err)
		}
	}
	t.text[kind], t.html[kind] = text, markup
	return nil
}

// within returns the template of a name in a set: root itself, or a new one.
func within[T interface{ Name() string }](root T, name string, other func(string) T) T {
	if root.Name() == name {
		return root
	}
	return other(name)
}

// checkNames refuses files that replace no template, because their names are misspelt. It ignores
// hidden files.
func checkNames(folder fs.FS) error {
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return fmt.Errorf("read the folder of mail templates: %w", err)
	}
	var names []string
	for _, name := range append(Kinds(), shared) {
		names = append(names, string(name)+".txt", string(name)+".html")
	}
	var wrong []error
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !slices.Contains(names, e.Name()) {
			wrong = append(wrong, fmt.Errorf("mail template %s: unknown template; the replaceable ones are %s", e.Name(), strings.Join(names, ", ")))
		}
	}
	return errors.Join(wrong...)
}

// read returns a template's text: the replacement, or else the built-in one.
func read(theirs fs.FS, name string) (string, error) {
	if theirs != nil {
		text, err := fs.ReadFile(theirs, name)
		if err == nil {
			return string(text), nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	text, err := ours.ReadFile("template/" + name)
	return string(text), err
}

// try renders the samples.
func (t *Templates) try(kind Kind) error {
	for _, sample := range samples()[kind] {
		c, err := t.Render(kind, sample)
		switch {
		case err != nil:
			return err
		case c.Subject == "":
			return fmt.Errorf("mail template %s.txt: the subject is empty", kind)
		case strings.TrimSpace(c.Text) == "" || strings.TrimSpace(c.HTML) == "":
			return fmt.Errorf("mail templates %s.txt and .html: one renders an empty text", kind)
		}
	}
	return nil
}

// Render renders a mail. data must have the type of the kind. The error names the template.
func (t *Templates) Render(kind Kind, data any) (c Content, err error) {
	var subject, text, markup bytes.Buffer
	if t.text[kind].Lookup("subject") == nil {
		return c, fmt.Errorf(`mail template %s.txt: it lacks {{define "subject"}}...{{end}}`, kind)
	}
	for _, err := range []error{
		t.text[kind].ExecuteTemplate(&subject, "subject", data), t.text[kind].Execute(&text, data), t.html[kind].Execute(&markup, data),
	} {
		if err != nil {
			return c, fmt.Errorf("mail template: %w", err)
		}
	}
	return Content{Subject: oneLine(subject.String()), Text: strings.TrimSpace(text.String()) + "\n", HTML: markup.String()}, nil
}
