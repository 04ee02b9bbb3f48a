package deposit

import (
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
	"github.com/holdfast/holdfast/web/wire"
)

// form is what a depositor fills in.
type form struct {
	Collection, URL, Title, Creator, Date, ARK, LocalIDs, Notify, Type string
	Terms                                                              registry.Terms
	Update, Force                                                      bool
	Upload                                                             string // id of an upload that was received before
	Corrects, CorrectsIn                                               string // the batch that it corrects, and its collection
}

// Rights are those of its terms; empty if it gives none.
func (f form) Rights() (r registry.Rights) {
	if f.Terms.Rights != nil {
		r = *f.Terms.Rights
	}
	return r
}

// Bases are the bases of rights.
func (form) Bases() []registry.RightsBasis { return registry.RightsBases() }

// Statuses are the statuses of a copyright.
func (form) Statuses() []string { return registry.CopyrightStatuses() }

// depositPage is the content of the form.
type depositPage struct {
	Form        form
	Collections []registry.Collection
	Rules       *rules // of the chosen collection
	Types       []registry.PayloadType
	Begun       []wire.UploadStatus  // of the viewer, incoming
	Sent        []wire.UploadStatus  // of the viewer, received and not submitted
	Upload      *wire.UploadStatus   // that this form submits
	Correct     *registry.WorkItem   // the batch whose fields the form has
	By          *registry.Correction // has all that failed of Correct already
	Key         string               // of this form: sent twice, it submits once
}

// typesOffered are the types that a depositor may choose, the likely ones first.
func typesOffered() []registry.PayloadType {
	return []registry.PayloadType{
		registry.AutoType, registry.FileType, registry.ContainerType, registry.BagType, registry.ObjectManifest,
		registry.BatchManifest, registry.ContainerBatch, registry.SingleFileBatch,
	}
}

// ask shows the form. The address may name an upload to submit, or a batch to correct.
func (p pages) ask(r *http.Request) (page.Page, error) {
	query := r.URL.Query()
	from := query.Get("from")
	if from == "" {
		return p.form(r, form{Collection: query.Get("collection"), Upload: query.Get("upload")}, nil, nil)
	}
	batch, progress, err := p.toCorrect(r.Context(), from)
	if err != nil {
		return page.Page{}, err
	}
	f := formOf(batch)
	switch phase := phaseOf(batch, progress); { // of the others the form takes over the fields only
	case phase == phaseMine && batch.Status.Settled():
		f.Corrects, f.CorrectsIn = batch.ID, batch.Collection
	case phase == phaseCorrected:
		c := depositPage{Correct: &batch, By: correctedBy(progress)}
		return page.Page{Name: "deposit", Title: p.Texts(r).T("Correct: %s", batch.Heading()), Section: "deposits", Content: c}, nil
	}
	return p.form(r, f, &batch, nil)
}

// toCorrect reads a batch that the viewer may correct.
func (p pages) toCorrect(ctx context.Context, id string) (batch registry.WorkItem, progress registry.BatchProgress, err error) {
	if batch, err = p.API.Batch(ctx, id); err != nil {
		return batch, progress, err
	}
	me, err := p.API.OwnToken(ctx)
	if err != nil {
		return batch, progress, err
	}
	if !p.mayCorrect(ctx, batch, me) {
		return batch, progress, page.Forbidden()
	}
	progress, err = p.API.BatchProgress(ctx, id)
	return batch, progress, err
}

// formOf is the form with which a batch was submitted, without its payload.
func formOf(batch registry.WorkItem) form {
	spec := specOf(batch)
	f := form{
		Collection: batch.Collection, Title: spec.Title, Creator: spec.Creator, Date: spec.Date, ARK: spec.PrimaryID, LocalIDs: strings.Join(spec.LocalIDs, "\n"),
		Notify: strings.Join(spec.Notify, ", "), Update: spec.Mode == registry.Update, Terms: spec.Terms,
	}
	if _, upload := registry.UploadID(spec.URL); !upload { // without its secrets
		f.URL = spec.URL
	}
	return f
}

// form returns the page of the form, with what is wrong with it.
func (p pages) form(r *http.Request, f form, correct *registry.WorkItem, refused *wire.Problem) (page.Page, error) {
	ctx := r.Context()
	if !p.May(ctx, "submit-payload") {
		return page.Page{}, page.Forbidden()
	}
	content := depositPage{Form: f, Types: typesOffered(), Correct: correct, Key: page.NewKey()}
	var err error
	if content.Collections, err = p.API.Collections(ctx); err != nil {
		return page.Page{}, err
	}
	if f.Upload != "" {
		u, err := p.API.Upload(ctx, f.Upload)
		if errors.Is(err, registry.ErrNotFound) && refused != nil { // it is what was refused, and was removed
			content.Form.Upload = ""
		} else if err != nil {
			return page.Page{}, err
		} else {
			content.Upload = &u
			if content.Form.Collection == "" {
				content.Form.Collection = u.Collection
			}
		}
	}
	if content.Rules, err = p.rulesOf(r, content.Collections, content.Form.Collection); err != nil {
		return page.Page{}, err
	}
	me, err := p.API.OwnToken(ctx)
	if err != nil {
		return page.Page{}, err
	}
	uploads, err := p.API.UploadPage(ctx, "")
	if err != nil {
		return page.Page{}, err
	}
	for _, u := range uploads.Rows {
		switch {
		case u.CreatedBy != me.Name || u.BatchID != "" || u.ID == f.Upload:
		case u.Complete:
			content.Sent = append(content.Sent, u)
		default:
			content.Begun = append(content.Begun, u)
		}
	}
	return page.Page{Name: "deposit", Title: p.Texts(r).T("Deposit"), Section: "deposit", Scripts: []string{"vendor/tus.js", "tar.js", "deposit.js"}, Content: content, Refused: refused}, nil
}

// Bounds of the form.
const (
	mostField  = 64 << 10 // bytes of a field
	mostFields = 40
	idle       = 2 * time.Minute // without a byte of a file: the sender counts as gone
	mostDrain  = 1 << 30         // bytes to read after a refusal, so that the browser shows it
	judgeFor   = 10 * time.Minute
)

// submit submits what the form has: an address, an upload, or a file in the form itself, which is
// never in memory. A form that is refused is shown again; a file that was received stays, unless it
// is what was refused.
func (p pages) submit(w http.ResponseWriter, r *http.Request) (string, *page.Page, error) {
	ctx := r.Context()
	values, uploaded, err := p.received(w, r)
	f := readForm(values)
	if uploaded != "" {
		f.Upload = uploaded
	}
	if err == nil {
		request := f.request()
		key := values.Get("key")
		if f.Upload != "" {
			key = "upload " + f.Upload // whoever submits it, by this form or by the page's script: once
		}
		if request.UploadID == "" && request.URL == "" {
			err = page.Wrong("file", p.Texts(r).T("Choose a file, or give an address."))
		} else {
			var answer wire.SubmitResponse
			if answer, err = p.submitJudged(ctx, request, key); err == nil {
				return depositURL(answer.BatchID, answer.Duplicate), nil, nil
			}
		}
	}
	refused, ok := page.Refusal(err)
	if !ok {
		return "", nil, err
	}
	if refused.Code == wire.CodeJudging { // it took too long for a page
		return "/deposit?" + url.Values{"upload": {f.Upload}, "collection": {f.Collection}}.Encode(), nil, nil
	}
	for i := range refused.Faults {
		if strings.HasPrefix(refused.Faults[i].Location, "body.corrects") { // which nobody types
			refused.Faults[i].Location = ""
		}
	}
	var correct *registry.WorkItem
	if f.Corrects != "" {
		if batch, err := p.API.Batch(ctx, f.Corrects); err == nil { // otherwise the refusal says so
			correct = &batch
		}
	}
	again, err := p.form(r, f, correct, refused)
	return "", &again, err
}

// submitJudged submits a payload, and waits while it is judged.
func (p pages) submitJudged(ctx context.Context, request wire.SubmitRequest, key string) (wire.SubmitResponse, error) {
	return judged(ctx, func() (wire.SubmitResponse, error) { return p.API.Submit(ctx, request, key) })
}

// received reads the form, and stores its file as an upload while it comes.
func (p pages) received(w http.ResponseWriter, r *http.Request) (values url.Values, upload string, err error) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != "multipart/form-data" {
		if err := r.ParseForm(); err != nil {
			return url.Values{}, "", page.Invalid("the form could not be read")
		}
		return r.PostForm, "", nil
	}
	control := http.NewResponseController(w)
	body := &waiting{body: r.Body, control: control}
	defer control.SetReadDeadline(time.Time{}) //nolint:errcheck // the connection is reused, or closed
	r.Body = body
	values = url.Values{}
	parts, err := r.MultipartReader()
	if err != nil {
		return values, "", page.Invalid("the form could not be read")
	}
	for n := 0; ; n++ {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return values, upload, nil
		}
		if err == nil && n == mostFields {
			err = errors.New("too many fields")
		}
		if err != nil {
			return values, upload, page.Invalid("the form ended early; send it again")
		}
		if name := part.FileName(); name != "" && upload == "" {
			u, err := p.API.SendStream(r.Context(), name, values.Get("collection"), part)
			if err != nil {
				_, _ = io.CopyN(io.Discard, body, mostDrain) // as far as it comes
				return values, "", err
			}
			upload = u.ID
		} else if err := readField(values, part); err != nil {
			return values, upload, err
		}
	}
}

// readField reads a field of a form. A field for a file is empty if no file was chosen.
func readField(values url.Values, part *multipart.Part) error {
	text, err := io.ReadAll(io.LimitReader(part, mostField+1))
	if err != nil || len(text) > mostField {
		return page.Invalid("the field %s could not be read", part.FormName())
	}
	values.Add(part.FormName(), string(text))
	return nil
}

// waiting is a body that must not stop for long.
type waiting struct {
	body    io.ReadCloser
	control *http.ResponseController
}

// Read implements io.Reader.
func (b *waiting) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(idle)) // if this fails, the server's own deadline holds
	return b.body.Read(p)
}

// Close implements io.Closer.
func (b *waiting) Close() error { return b.body.Close() }

func readForm(values url.Values) form {
	text := func(name string) string { return strings.TrimSpace(values.Get(name)) }
	return form{
		Collection: text("collection"), URL: text("url"), Title: text("title"), Creator: text("creator"), Date: text("date"), ARK: text("ark"),
		LocalIDs: text("local_ids"), Notify: text("notify"), Type: text("type"), Update: text("update") != "", Force: text("force") != "", Upload: text("upload"),
		Terms:    page.TermsOf(values),
		Corrects: text("corrects"), CorrectsIn: text("corrects_in"),
	}
}

// listOf splits a text at any of the separators.
func listOf(text, separators string) (out []string) {
	for _, one := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(separators, c) }) {
		if one = strings.TrimSpace(one); one != "" {
			out = append(out, one)
		}
	}
	return out
}

// addressesOf splits mail addresses at commas and semicolons, and at spaces where each part may be an
// address: "ann at example.org" is one wrong address, not three.
func addressesOf(text string) (out []string) {
	for _, one := range listOf(text, "\r\n;,") {
		parts := strings.Fields(one)
		if slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(part, "@") }) {
			parts = []string{one}
		}
		out = append(out, parts...)
	}
	return out
}

// request is what the form submits. Local ids are separated by lines or semicolons: a comma may be part
// of one.
func (f form) request() wire.SubmitRequest {
	var corrects *registry.Corrects
	if f.Corrects != "" && f.Collection == f.CorrectsIn { // in another collection it is another deposit
		corrects = &registry.Corrects{BatchID: f.Corrects}
	}
	return wire.SubmitRequest{
		Terms: f.Terms, Corrects: corrects, Collection: f.Collection, URL: f.URL, UploadID: f.Upload, Type: f.Type, ARK: f.ARK, LocalIDs: listOf(f.LocalIDs, "\r\n;"), Title: f.Title, Creator: f.Creator,
		Date: f.Date, Notify: addressesOf(f.Notify), Update: f.Update, Force: f.Force,
	}
}

// depositURL is the address of a batch's page for its depositor. again says that the same content had
// been submitted before.
func depositURL(id string, again bool) string {
	u := url.URL{Path: "/deposits/" + id}
	if again {
		u.RawQuery = "again=1"
	}
	return u.String()
}
