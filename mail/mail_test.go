package mail_test

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/mail"
	"github.com/holdfast/holdfast/mail/mailtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const from = "Holdfast Überwachung <holdfast@archive.example.org>"

func sender(t *testing.T, s *mailtest.Server) *mail.Sender {
	t.Helper()
	return senderAt(t, s, s.URL())
}

func senderAt(t *testing.T, s *mailtest.Server, url string) *mail.Sender {
	t.Helper()
	out, err := mail.New(mail.Options{URL: url, From: from, RootCAs: s.Roots(), Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func message(to string) mail.Message {
	return mail.Message{
		ID: "msg_1_report_1_ab", To: to, At: time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC),
		Content: mail.Content{Subject: "Holdfast OK: Größe", Text: "All is well: Größe\n.\nafter a dot\n", HTML: "<p>All is well</p>"},
	}
}

// fails sends and returns how that failed.
func fails(t *testing.T, s *mail.Sender, m mail.Message) *mail.Error {
	t.Helper()
	var e *mail.Error
	if err := s.Send(t.Context(), m); !errors.As(err, &e) {
		t.Fatalf("error %v, want a *mail.Error", err)
	}
	return e
}

// TestSend checks that a message arrives complete over each kind of connection, with its
// Message-ID.
func TestSend(t *testing.T) {
	t.Parallel()
	for _, security := range []string{"", "starttls", "tls"} {
		for _, user := range []string{"", "ann"} {
			t.Run(security+" "+user, func(t *testing.T) {
				t.Parallel()
				s := mailtest.Start(t, mailtest.Options{Security: security, User: user, Password: "pass:word@/"})
				m := message("bob@example.org")
				m.Attachments = []mail.Attachment{{Name: "failed.csv", Type: "text/csv", Data: []byte("row,name\n1,Größe\n")}}
				if err := sender(t, s).Send(t.Context(), m); err != nil {
					t.Fatal(err)
				}
				got := s.Got()
				if len(got) != 1 {
					t.Fatalf("%d mails", len(got))
				}
				g := got[0]
				if g.From != "holdfast@archive.example.org" || g.To != "bob@example.org" || g.User != user || g.TLS != (security != "") {
					t.Errorf("envelope: from %q to %q by %q, TLS %v", g.From, g.To, g.User, g.TLS)
				}
				for name, want := range map[string]string{
					"Message-Id": "<msg_1_report_1_ab@archive.example.org>", "To": "<bob@example.org>", "Auto-Submitted": "auto-generated",
					"Date": "Sun, 22 Nov 2026 06:00:00 +0000", "From": "=?utf-8?q?Holdfast_=C3=9Cberwachung?= <holdfast@archive.example.org>",
				} {
					if have := g.Header.Get(name); have != want {
						t.Errorf("%s: %q, want %q", name, have, want)
					}
				}
				text := strings.ReplaceAll(g.Text, "\r\n", "\n")
				if g.Subject != m.Content.Subject || text != m.Content.Text || g.HTML != m.Content.HTML || string(g.Files["failed.csv"]) != string(m.Attachments[0].Data) {
					t.Errorf("subject %q, text %q, html %q, files %q", g.Subject, text, g.HTML, g.Files)
				}
			})
		}
	}
}

// TestSend_InsistsOnTLS checks that a server without STARTTLS, or with an untrusted certificate,
// gets neither password nor mail.
func TestSend_InsistsOnTLS(t *testing.T) {
	t.Parallel()
	plain := mailtest.Start(t, mailtest.Options{User: "ann", Password: "secret"})
	e := fails(t, senderAt(t, plain, plain.URL()+"?tls=starttls"), message("bob@example.org"))
	if e.Permanent || !strings.Contains(e.Error(), "STARTTLS") {
		t.Errorf("without STARTTLS: %v, permanent %v", e, e.Permanent)
	}
	unknown := mailtest.Start(t, mailtest.Options{Security: "tls", User: "ann", Password: "secret"})
	s, err := mail.New(mail.Options{URL: unknown.URL(), From: from})
	if err != nil {
		t.Fatal(err)
	}
	if e := fails(t, s, message("bob@example.org")); e.Permanent || !strings.Contains(e.Error(), "certificate") {
		t.Errorf("unknown authority: %v, permanent %v", e, e.Permanent)
	}
	if n := len(plain.Got()) + len(unknown.Got()) + plain.Logins() + unknown.Logins(); n != 0 {
		t.Errorf("%d mails and passwords went out", n)
	}
}

// TestSend_WrongPassword checks that a wrong password is no fault of the address, and that no error
// contains it.
func TestSend_WrongPassword(t *testing.T) {
	t.Parallel()
	s := mailtest.Start(t, mailtest.Options{Security: "starttls", User: "ann", Password: "right"})
	e := fails(t, senderAt(t, s, strings.Replace(s.URL(), "right", "hunter2", 1)), message("bob@example.org"))
	if e.Code != 535 || e.Permanent || !strings.Contains(e.Remedy(), "HOLDFAST_SMTP_URL") || e.ErrorCode() != "smtp-535" {
		t.Errorf("%v: code %d, permanent %v, %s", e, e.Code, e.Permanent, e.Remedy())
	}
	encoded := base64.StdEncoding.EncodeToString([]byte("\x00ann\x00hunter2"))
	if strings.Contains(e.Error(), "hunter2") || strings.Contains(e.Error(), encoded) {
		t.Errorf("the error shows the password: %v", e)
	}
	if e := fails(t, senderAt(t, s, strings.Replace(s.URL(), "ann:right@", "", 1)), message("bob@example.org")); e.Code != 530 || e.Permanent {
		t.Errorf("without a password: %v: code %d, permanent %v", e, e.Code, e.Permanent)
	}
}

// TestSend_Refused checks which refusals count as permanent.
func TestSend_Refused(t *testing.T) {
	t.Parallel()
	s := mailtest.Start(t, mailtest.Options{})
	out := sender(t, s)
	for _, tt := range []struct {
		name      string
		rcpt      int
		data      error
		code      int
		permanent bool
	}{
		{"no such user", 550, nil, 550, true},
		{"greylisted", 451, nil, 451, false},
		{"mailbox busy", 450, nil, 450, false},
		{"says that we are nobody", 530, nil, 530, false},
		{"content refused", 0, &smtp.SMTPError{Code: 554, Message: "spam"}, 554, true},
		{"content later", 0, &smtp.SMTPError{Code: 452, Message: "disk full"}, 452, false},
		{"dropped", 0, mailtest.ErrDrop, 0, false},
	} {
		s.Refuse("bob@example.org", tt.rcpt)
		s.OnData(func(string, string, []byte) error { return tt.data })
		if e := fails(t, out, message("bob@example.org")); e.Code != tt.code || e.Permanent != tt.permanent {
			t.Errorf("%s: %v: code %d, permanent %v", tt.name, e, e.Code, e.Permanent)
		}
	}
	s.Refuse("bob@example.org", 0)
	s.OnData(nil)
	if err := out.Send(t.Context(), message("bob@example.org")); err != nil || len(s.Got()) != 1 {
		t.Errorf("at last: %v", err)
	}
}

// TestR22_UnknownOutcome checks that a message is sent again, with the same Message-ID, if the
// server has it but breaks the connection.
func TestR22_UnknownOutcome(t *testing.T) {
	t.Parallel()
	s := mailtest.Start(t, mailtest.Options{Security: "starttls"})
	var ids []string
	drop := true
	s.OnData(func(_, _ string, raw []byte) error {
		m, err := mailtest.Parse(raw)
		ids = append(ids, m.Header.Get("Message-Id"))
		if drop {
			return mailtest.ErrDrop
		}
		return err
	})
	out := sender(t, s)
	fails(t, out, message("bob@example.org"))
	drop = false
	if err := out.Send(t.Context(), message("bob@example.org")); err != nil {
		t.Fatal(err)
	}
	if len(ids) != 2 || ids[0] != ids[1] || ids[0] == "" {
		t.Errorf("Message-IDs %q, want the same twice", ids)
	}
}

// TestSend_Down checks that an unreachable server is tried again, and that a cancelled try ends at
// once without sending half a message.
func TestSend_Down(t *testing.T) {
	t.Parallel()
	s := mailtest.Start(t, mailtest.Options{})
	out := sender(t, s)
	s.Down()
	if e := fails(t, out, message("bob@example.org")); e.Permanent || e.Code != 0 || !strings.Contains(e.Error(), "127.0.0.1") {
		t.Errorf("down: %v", e)
	}
	s.Up()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("the worker stops")
	held, release := make(chan struct{}), make(chan struct{})
	s.OnData(func(string, string, []byte) error { close(held); <-release; return mailtest.ErrDrop })
	go func() { <-held; cancel(stop) }()
	err := out.Send(ctx, message("bob@example.org"))
	close(release)
	if !errors.Is(err, stop) {
		t.Errorf("cancelled: %v, want %v", err, stop)
	}
	s.OnData(nil)
	s.Got()
	if err := out.Send(t.Context(), message("bob@example.org")); err != nil || len(s.Got()) != 1 {
		t.Errorf("up again: %v", err)
	}
}

// TestSend_NoInjection checks that text from depositors adds no header, recipient or part.
func TestSend_NoInjection(t *testing.T) {
	t.Parallel()
	s := mailtest.Start(t, mailtest.Options{})
	out := sender(t, s)
	m := message("bob@example.org")
	m.Content.Subject = "Title\r\nBcc: eve@example.org\r\n\r\nbody\x00 \u2028 " + strings.Repeat("ü", 400)
	m.Content.Text = "text\r\n.\r\nMAIL FROM:<eve@example.org>\r\n"
	m.Attachments = []mail.Attachment{{Name: "failed.json", Type: "application/json", Data: []byte("{}")}}
	if err := out.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	got := s.Got()
	if len(got) != 1 || got[0].To != "bob@example.org" || got[0].Header.Get("Bcc") != "" || !strings.HasPrefix(got[0].Subject, "Title Bcc: eve@example.org body ü") {
		t.Fatalf("%+v", got)
	}
	if got[0].Text != m.Content.Text || len(got[0].Files) != 1 {
		t.Errorf("text %q, files %v", got[0].Text, got[0].Files)
	}
	for _, to := range []string{
		"bob@example.org\r\nRCPT TO:<eve@example.org>", "bob@example.org, eve@example.org", "Bob <bob@example.org>", "", "bob", "a b@example.org", "bob@example.org\x00",
		"\"a\r\nb\"@example.org",
	} {
		if e := fails(t, out, message(to)); !e.Permanent {
			t.Errorf("%q: %v", to, e)
		}
	}
	if n := len(s.Got()); n != 0 {
		t.Errorf("%d mails went to what is no address", n)
	}
}

func TestParseURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]mail.Server{
		"smtp://mail.example.org":                       {Host: "mail.example.org", Port: 587, Security: mail.StartTLS},
		"smtp://mail.example.org:25/?tls=none":          {Host: "mail.example.org", Port: 25, Security: mail.NoTLS},
		"smtps://ann:p%40ss@mail.example.org":           {Host: "mail.example.org", Port: 465, User: "ann", Password: "p@ss", Security: mail.ImplicitTLS},
		"smtp://ann:pass@127.0.0.1:2525":                {Host: "127.0.0.1", Port: 2525, User: "ann", Password: "pass", Security: mail.NoTLS},
		"smtp://localhost?tls=starttls":                 {Host: "localhost", Port: 587, Security: mail.StartTLS},
		"smtp://ann:pass@mail.example.org:2587":         {Host: "mail.example.org", Port: 2587, User: "ann", Password: "pass", Security: mail.StartTLS},
		"smtp://[::1]:2525":                             {Host: "::1", Port: 2525, Security: mail.NoTLS},
		"smtp://a%40example.org:pass@smtp.example.org/": {Host: "smtp.example.org", Port: 587, User: "a@example.org", Password: "pass", Security: mail.StartTLS},
	} {
		if got, err := mail.ParseURL(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "mail.example.org:587", "http://mail.example.org", "smtp://", "smtp://mail.example.org:0", "smtp://mail.example.org:99999", "smtp://mail.example.org/path",
		"smtp://ann:hunter2@mail.example.org?tls=none", "smtp://ann@mail.example.org", "smtp://mail.example.org?tls=maybe", "smtp://mail.example.org?ssl=none", "smtps://mail.example.org?tls=none",
		"smtp://ann:hunter2@mail.example.org:port",
	} {
		if _, err := mail.ParseURL(text); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "nobody", "a@b.org\r\nBcc: c@d.org", "a@b.org, c@d.org"} {
		if _, err := mail.New(mail.Options{URL: "smtp://mail.example.org", From: text}); err == nil {
			t.Errorf("from %q is taken", text)
		}
	}
}

func TestLoadTemplates(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("queued.txt", `{{define "subject"}}Bestand {{.Name}}{{end}}Wir haben {{.Name}} erhalten. {{template "batch" .Batch}}`)
	write("batch.html", `{{define "batch"}}<table><tr><td>{{.Name}}</td></tr>{{end}}`)
	write(".hidden", "no template")
	theirs, err := mail.LoadTemplates(folder)
	if err != nil {
		t.Fatal(err)
	}
	data := mail.Queued{Batch: mail.Batch{Name: "<b>Glas\r\nplatten</b>", ID: "1", Link: "javascript:alert(1)"}}
	c, err := theirs.Render(mail.KindQueued, data)
	if err != nil || c.Subject != "Bestand <b>Glas platten</b>" || !strings.HasPrefix(c.Text, "Wir haben") || !strings.Contains(c.Text, "Batch:      1") {
		t.Errorf("%+v, %v", c, err)
	}
	if strings.Contains(c.HTML, "<b>") || !strings.Contains(c.HTML, "<tr><td>&lt;b&gt;Glas") || strings.Contains(c.HTML, "javascript") {
		t.Errorf("HTML %s", c.HTML)
	}
	ours, err := mail.LoadTemplates("")
	if err != nil {
		t.Fatal(err)
	}
	if c, err = ours.Render(mail.KindQueued, data); err != nil || strings.Contains(c.HTML, "<b>") || strings.Contains(c.HTML, `href="javascript`) {
		t.Errorf("%s, %v", c.HTML, err)
	}
	for name, text := range map[string]string{
		"report.txt":  `{{define "subject"}}a{{end}}{{.Other}}`, // no such field
		"report.html": `<p>{{if .Failed}}`,                      // not closed
		"safe.txt":    `no subject`,                             //
		"failed.txt":  `{{define "subject"}} {{end}}text`,       // an empty one
		"digest.html": ``,                                       // nothing
		"raport.txt":  `{{define "subject"}}a{{end}}text`,       // misspelt
		"batch.txt":   `{{define "batch"}}{{.Other}}{{end}}`,    // used by others
		"queued.html": `<p>{{template "missing" .}}</p>`,        //
	} {
		folder = t.TempDir()
		write(name, text)
		if _, err := mail.LoadTemplates(folder); err == nil || !strings.Contains(err.Error(), strings.SplitN(name, ".", 2)[0]) {
			t.Errorf("%s %q: %v", name, text, err)
		}
	}
	if _, err := mail.LoadTemplates(filepath.Join(folder, "none")); err == nil {
		t.Error("a folder that is not there is taken")
	}
}

// TestList checks that small files are attached as they are, larger ones compressed, and too large
// ones left out.
func TestList(t *testing.T) {
	t.Parallel()
	fill := func(n int, block func(i int) string) *mail.List {
		l := mail.NewList("failed.csv", "text/csv")
		for i := range n {
			if _, err := l.Write([]byte(block(i))); err != nil {
				t.Fatal(err)
			}
		}
		return l
	}
	same := func(int) string { return strings.Repeat("row\n", 256) }
	if a, ok := fill(1, same).Attachment(mail.MostAttached); !ok || a.Name != "failed.csv" || a.Type != "text/csv" || len(a.Data) != 1024 {
		t.Errorf("small: %s, %d bytes, %v", a.Name, len(a.Data), ok)
	}
	if a, ok := fill(20_000, same).Attachment(mail.MostAttached); !ok || a.Name != "failed.csv.gz" || a.Type != "application/gzip" || len(a.Data) > 1<<20 {
		t.Errorf("large: %s, %d bytes, %v", a.Name, len(a.Data), ok)
	}
	if a, ok := fill(20_000, same).Attachment(1000); ok {
		t.Errorf("beyond what is left: %s, %d bytes", a.Name, len(a.Data))
	}
	seed := uint64(1)
	noise := func(int) string {
		b := make([]byte, 1024)
		for i := range b {
			seed = seed*6364136223846793005 + 1442695040888963407
			b[i] = byte(seed >> 56)
		}
		return string(b)
	}
	if a, ok := fill(9_000, noise).Attachment(mail.MostAttached); ok {
		t.Errorf("too large: %s, %d bytes", a.Name, len(a.Data))
	}
}
