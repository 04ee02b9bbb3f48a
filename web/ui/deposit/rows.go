package deposit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/lang"
	"github.com/holdfast/holdfast/web/ui/page"
	"github.com/holdfast/holdfast/web/wire"
)

const (
	rowsShown = 10  // failed rows on a page
	rowsRead  = 500 // at once, when all of them are submitted
)

// column is a column of a manifest that people may correct.
type column struct {
	Name  string // of the field in the form
	Field string // of the column in the manifest
	Label string
	Wide  bool
}

// columns are the columns of batch manifests, in the order of the form.
func columns(t lang.Texts) []column {
	return []column{
		{"url", "nfo:fileUrl", t.T("Address of the file"), true},
		{"digest", "nfo:hashValue", t.T("Digest"), true},
		{"algorithm", "nfo:hashAlgorithm", t.T("Digest algorithm"), false},
		{"name", "nfo:fileName", t.T("File name"), false},
		{"size", "nfo:fileSize", t.T("Size in bytes"), false},
		{"modified", "nfo:fileLastModified", t.T("Last changed"), false},
		{"title", "mrt:title", t.T("Title"), true},
		{"creator", "mrt:creator", t.T("Creator"), false},
		{"date", "mrt:date", t.T("Date"), false},
		{"ark", "mrt:primaryIdentifier", t.T("ARK"), false},
		{"local_ids", "mrt:localIdentifier", t.T("Your identifiers (;)"), false},
	}
}

// cellForm is a cell of a row in the form.
type cellForm struct {
	column

	ID      string // of its field, on the page
	Why     string // the id of what says why the row failed
	Value   string
	Was     string // its value when the row failed
	AtFault bool   // the row failed because of it, probably
	Faults  []wire.Fault
	First   bool // it is the first on the page that has faults
}

// rowForm is a failed row in the form.
type rowForm struct {
	ID, Line, Name string
	At             int64 // its line
	Error          string
	Out, AsIs      bool   // see [edit]
	Lost           bool   // its digest could not be read, so it was not kept
	CorrectedBy    string // the deposit that corrects it; ""
	Cells          []cellForm
	Faults         []wire.Fault // of the whole row
}

// NumFaults counts the faults that the check found.
func (r rowForm) NumFaults() int {
	n := len(r.Faults)
	for _, c := range r.Cells {
		n += len(c.Faults)
	}
	return n
}

// Folded are its cells of which nothing is known to be wrong, in the order of the form. Open are the others.
func (r rowForm) Folded() []cellForm {
	return r.of(func(c cellForm) bool { return !c.AtFault && len(c.Faults) == 0 })
}

// Open are its cells that are probably to be corrected.
func (r rowForm) Open() []cellForm {
	return r.of(func(c cellForm) bool { return c.AtFault || len(c.Faults) > 0 })
}

func (r rowForm) of(wanted func(cellForm) bool) (cells []cellForm) {
	for _, c := range r.Cells {
		if wanted(c) {
			cells = append(cells, c)
		}
	}
	return cells
}

// blame marks the cells because of which the row failed: its error names their columns, or says what it
// found in them. Otherwise it is the address.
func (r *rowForm) blame() {
	found := false
	for i := range r.Cells {
		c := &r.Cells[i]
		quoted := slices.Contains([]string{"url", "digest", "ark"}, c.Name) && c.Value != "" && strings.Contains(r.Error, c.Value)
		c.AtFault = quoted || strings.Contains(r.Error, "("+c.Field+")")
		found = found || c.AtFault
	}
	for i := range r.Cells {
		r.Cells[i].AtFault = r.Cells[i].AtFault || !found && r.Cells[i].Name == "url"
	}
}

// placed is the place in the manifest with which the errors of refused rows begin, and the rule.
var placed = regexp.MustCompile(`^line \d+(, column \d+ \([^)]*\))?: ([a-z-]+; )?`)

// Wrong is its error without place and rule: the form shows the place, and the text says more than the rule.
func (r rowForm) Wrong() string { return placed.ReplaceAllString(r.Error, "") }

// Field is the id of its first field with faults, or else of its first one.
func (r rowForm) Field() string {
	i := slices.IndexFunc(r.Cells, func(c cellForm) bool { return len(c.Faults) > 0 })
	return r.Cells[max(i, 0)].ID
}

// cells returns the texts of the row in the order of a manifest of kind k.
func (r rowForm) cells(k checkm.Kind) []string {
	fields := k.Fields()
	out := make([]string, len(fields))
	for _, c := range r.Cells {
		if i := slices.Index(fields, c.Field); i >= 0 {
			out[i] = c.Value
		}
	}
	return out
}

// rowsPage is the form that corrects the failed rows of a manifest.
type rowsPage struct {
	Batch      registry.WorkItem
	Rows       []rowForm
	Failed     int64 // failed rows of the batch
	Total      int64 // of them, those that no deposit corrects
	Open       int   // of Rows, those that no deposit corrects
	Done       []registry.Correction
	Corrected  bool // all of them were submitted
	Prev, Next string
	Here       string
	Picked     bool     // Rows are those that are wrong, of any page
	Kept       []string // what was done to rows of other pages
	Away       int      // of them, those that are submitted too
	From, To   string   // what to replace in all addresses
	Wrong      int      // rows that are still wrong
	Others     []wire.Fault
	Refused    *wire.Problem
	Did        string

	columns []column
	edits   edits // of all pages
}

// Several reports whether there may be rows on other pages. Then only those that were changed are submitted.
func (c rowsPage) Several() bool { return c.Prev != "" || c.Next != "" || c.Picked || len(c.Kept) > 0 }

// Typed reports whether anything was changed on any page.
func (c rowsPage) Typed() bool { return len(c.edits) > 0 }

// rowKind returns the kind of manifest that a batch was; checkm.Unknown if its jobs are no rows. The
// type of a batch that was fetched may be known by its jobs only.
func rowKind(batch registry.WorkItem, job *registry.WorkItem) checkm.Kind {
	spec := specOf(batch)
	if _, ok := spec.Type.JobType(); ok {
		return checkm.Kind(spec.Type)
	}
	if spec.Type != registry.AutoType || job == nil || job.Line <= 1 {
		return checkm.Unknown
	}
	for _, t := range []registry.PayloadType{registry.BatchManifest, registry.ContainerBatch, registry.SingleFileBatch} {
		if of, _ := t.JobType(); of == specOf(*job).Type {
			return checkm.Kind(t)
		}
	}
	return checkm.Unknown
}

// correctable reports whether the failed rows of a batch can be corrected on their own.
func correctable(batch registry.WorkItem, p registry.BatchProgress) bool {
	_, rows := specOf(batch).Type.JobType()
	return p.Content > p.Corrected && (rows || specOf(batch).Type == registry.AutoType && p.Jobs > 1)
}

// correctURL is the address of the form that corrects a deposit: its failed rows, or all of it.
func correctURL(batch registry.WorkItem, rows bool) string {
	if rows {
		return "/deposits/" + batch.ID + "/rows"
	}
	return "/deposit?from=" + batch.ID
}

// failedRows reads failed rows of a batch whose content was at fault, and for which more holds.
func (p pages) failedRows(ctx context.Context, batchID, after, before string, limit int, more ...registry.Term) (registry.Page[registry.WorkItem], error) {
	return p.API.Items(ctx, registry.ItemQuery{
		ParentID: batchID, Status: registry.Failed, After: after, Before: before, Limit: limit,
		Match: registry.Query{Terms: append([]registry.Term{{Field: "class", Value: string(registry.ContentFault)}}, more...)},
	})
}

// rowOf is a failed job as its row.
func rowOf(job registry.WorkItem, k checkm.Kind, columns []column) rowForm {
	spec := specOf(job)
	row := checkm.Row{
		URL: spec.URL, Size: spec.SizeBytes, Modified: spec.Modified, Name: spec.Filename, PrimaryID: spec.PrimaryID, LocalIDs: spec.LocalIDs,
		Creator: spec.Creator, Title: spec.Title, Date: spec.Date,
	}
	if spec.Digest != nil {
		row.Algorithm, row.Digest = spec.Digest.Algorithm, spec.Digest.Value
	}
	r := rowForm{ID: job.ID, At: job.Line, Line: registry.LineText(job.Row, job.Line), Name: job.Heading(), Error: job.Note, CorrectedBy: job.CorrectedBy}
	r.Lost = spec.Digest == nil && strings.Contains(job.Note, "(nfo:hash")
	fields, cells := k.Fields(), k.Cells(row)
	for _, c := range columns {
		text := cells[slices.Index(fields, c.Field)]
		r.Cells = append(r.Cells, cellForm{column: c, Value: text, Was: text})
	}
	r.blame()
	return r
}

// openRows reads a page of failed rows as a form.
func (p pages) openRows(r *http.Request) (rowsPage, checkm.Kind, error) {
	ctx, id, asked := r.Context(), r.PathValue("id"), r.URL.Query()
	batch, progress, err := p.toCorrect(ctx, id)
	if err != nil {
		return rowsPage{}, "", err
	}
	jobs, err := p.failedRows(ctx, id, asked.Get("after"), asked.Get("before"), rowsShown)
	if err != nil {
		return rowsPage{}, "", err
	}
	c := rowsPage{Batch: batch, Failed: progress.Content, Total: progress.Content - progress.Corrected, Done: progress.Corrections, Corrected: correctedBy(progress) != nil, Here: r.URL.RequestURI(), Prev: page.Prev(r, jobs.Prev), Next: page.Next(r, jobs.Next)}
	var kind checkm.Kind
	if len(jobs.Rows) > 0 {
		kind = rowKind(batch, &jobs.Rows[0])
	}
	if kind == checkm.Unknown {
		return c, kind, nil
	}
	c.columns = columns(p.Texts(r))
	var rows []rowForm
	for _, job := range jobs.Rows {
		rows = append(rows, rowOf(job, kind, c.columns))
	}
	c.show(rows)
	return c, kind, nil
}

// show makes rows those of the page.
func (c *rowsPage) show(rows []rowForm) {
	c.Rows, c.Open = rows, 0
	for i := range rows {
		for j := range rows[i].Cells {
			cell := &rows[i].Cells[j]
			cell.ID, cell.Why = fmt.Sprintf("%s-%d", cell.Name, i), fmt.Sprintf("why-%d", i)
		}
		if rows[i].CorrectedBy == "" {
			c.Open++
		}
	}
}

// askRows shows the failed rows of a manifest, to be corrected.
func (p pages) askRows(r *http.Request) (page.Page, error) {
	c, _, err := p.openRows(r)
	return p.rowsForm(r, c), err
}

func (p pages) rowsForm(r *http.Request, c rowsPage) page.Page {
	c.keep()
	return page.Page{Name: "rows", Title: p.Texts(r).T("Correct: %s", c.Batch.Heading()), Section: "deposits", Scripts: []string{"rows.js"}, Content: c}
}

// keep has the form carry what was done to rows of other pages.
func (c *rowsPage) keep() {
	c.Kept, c.Away = c.edits.kept(c.Rows), 0
	for id, e := range c.edits {
		if e.submitted() && !slices.ContainsFunc(c.Rows, func(r rowForm) bool { return r.ID == id }) {
			c.Away++
		}
	}
}

// fill takes over what was typed into the fields of rows of the form.
func fill(rows []rowForm, form url.Values) {
	for i := range rows {
		at := slices.Index(form["row"], rows[i].ID)
		if at < 0 {
			continue
		}
		rows[i].Out, rows[i].AsIs = slices.Contains(form["out"], rows[i].ID), slices.Contains(form["as_is"], rows[i].ID)
		for j := range rows[i].Cells {
			if texts := form[rows[i].Cells[j].Name]; at < len(texts) {
				rows[i].Cells[j].Value = texts[at]
			}
		}
	}
}

// typedRows is the page of a form that was sent, with what was typed there and, as it carried that, on
// other pages. Rows that are not failed any more are left out. Those that a deposit corrects by now are
// not: the same form sent twice is one batch, and for another one the Registry says which deposit has them.
func (p pages) typedRows(r *http.Request) (rowsPage, checkm.Kind, error) {
	c, kind, err := p.openRows(r)
	if err == nil && len(c.Rows) == 0 && r.URL.RawQuery != "" { // no row of this page is failed any more, but others may be
		first := r.Clone(r.Context())
		first.URL.RawQuery, first.RequestURI = "", r.URL.Path
		c, kind, err = p.openRows(first)
	}
	if err != nil || kind == checkm.Unknown {
		return c, kind, err
	}
	ctx, form := r.Context(), r.PostForm
	c.From, c.To = form.Get("from"), form.Get("to")
	if c.edits, err = readEdits(form); err != nil {
		return c, kind, err
	}
	sent := form["row"]
	if len(sent) > rowsShown {
		return c, kind, page.Invalid("the form could not be read")
	}
	turned := form.Get("act") == actTurn
	if form.Has("picked") && !turned {
		rows, err := p.rowsByID(ctx, c, kind, sent)
		if err != nil {
			return c, kind, err
		}
		c.Picked = true
		c.show(rows)
	}
	shown := func(id string) bool {
		return slices.ContainsFunc(c.Rows, func(r rowForm) bool { return r.ID == id })
	}
	left, err := p.rowsByID(ctx, c, kind, slices.DeleteFunc(slices.Clone(sent), shown)) // of the page before
	if err != nil {
		return c, kind, err
	}
	for _, rows := range [][]rowForm{left, c.Rows} {
		fill(rows, form)
		for i := range rows {
			if slices.Contains(sent, rows[i].ID) {
				c.edits.note(rows[i])
			} else {
				c.edits.apply(&rows[i])
			}
		}
	}
	c.keep()
	if turned && tooMany(c.Kept) {
		rows, err := p.rowsByID(ctx, c, kind, sent)
		if err != nil {
			return c, kind, err
		}
		c.pick(rows)
		c.Refused = wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeInvalid, "so many rows are changed that no more can be kept; submit them, then go on with the others")
	}
	return c, kind, nil
}

// pick shows rows of any page, as they were changed.
func (c *rowsPage) pick(rows []rowForm) {
	for i := range rows {
		c.edits.apply(&rows[i])
	}
	c.Picked = true
	c.show(rows)
}

// replace changes a part of the row's address. It reports whether that changed it.
func (r *rowForm) replace(from, to string) (changed bool) {
	for i := range r.Cells {
		if c := &r.Cells[i]; c.Name == "url" && from != "" {
			was := c.Value
			c.Value = strings.ReplaceAll(was, from, to)
			changed = changed || c.Value != was
		}
	}
	return changed
}

// The acts of the form.
const (
	actReplace = "replace" // in the addresses of this page, to be looked at
	actChanged = "changed" // submits the rows that were changed, of all pages
	actAll     = "all"     // submits all failed rows: as they were changed, or else as they are with the replacement
	actTurn    = "turn"    // shows another page, whose address the form is sent to
)

// submitRows submits rows as a manifest of their own, if no row is wrong: those that were changed, on any
// page; or, if the form had but one page, all on it that are not left out. Sent twice, it is one batch:
// the second is a duplicate of the first.
func (p pages) submitRows(r *http.Request) (string, *page.Page, error) {
	c, kind, err := p.typedRows(r)
	if err != nil {
		return "", nil, err
	}
	act := r.PostForm.Get("act")
	if act == actTurn || act == actReplace {
		if act == actReplace {
			c.Did = c.replaceShown(p.Texts(r))
		}
		again := p.rowsForm(r, c)
		if c.Refused == nil {
			again.Status = http.StatusOK
		}
		return "", &again, nil
	}
	answer, err := p.sendRows(r.Context(), &c, kind, r.PostForm)
	refused, ok := page.Refusal(err)
	if err != nil && !ok {
		return "", nil, err
	}
	if c.Refused = refused; ok || c.Wrong > 0 {
		again := p.rowsForm(r, c)
		return "", &again, nil
	}
	to, query := url.URL{Path: "/deposits/" + answer.BatchID}, url.Values{}
	if act == actChanged {
		query.Set("rest", r.URL.RawQuery)
	}
	to.RawQuery = query.Encode()
	return to.String(), nil, nil
}

// replaceShown changes a part of the addresses on the page, and says what it did.
func (c *rowsPage) replaceShown(t lang.Texts) string {
	changed := 0
	for i := range c.Rows {
		if c.Rows[i].replace(c.From, c.To) {
			changed++
			c.edits.note(c.Rows[i])
		}
	}
	if changed == 0 {
		return t.T("No address below has this text; nothing was changed.")
	}
	return t.T("%d address below is changed. Nothing was submitted yet.|%d addresses below are changed. Nothing was submitted yet.", changed)
}

// chosenRows returns the rows that are submitted, of those that the form sent and those that it carried.
// What is not to be corrected any more is forgotten.
func (p pages) chosenRows(ctx context.Context, c *rowsPage, kind checkm.Kind, form url.Values) (chosen []rowForm, err error) {
	if form.Get("act") != actChanged {
		for _, row := range c.Rows {
			if !row.Out && slices.Contains(form["row"], row.ID) {
				chosen = append(chosen, row)
			}
		}
		return chosen, nil
	}
	var ids []string
	for id, e := range c.edits {
		if e.submitted() {
			ids = append(ids, id)
		}
	}
	if chosen, err = p.rowsByID(ctx, *c, kind, ids); err != nil {
		return nil, err
	}
	for _, id := range ids {
		i := slices.IndexFunc(chosen, func(r rowForm) bool { return r.ID == id })
		if i >= 0 {
			c.edits.apply(&chosen[i])
		}
		if i < 0 || chosen[i].CorrectedBy != "" {
			delete(c.edits, id)
		}
	}
	return chosen, nil
}

// sendRows uploads the rows as a manifest, has it judged and submits it. It notes what is wrong in c, and
// shows the rows that are.
func (p pages) sendRows(ctx context.Context, c *rowsPage, kind checkm.Kind, form url.Values) (wire.SubmitResponse, error) {
	var body io.Reader
	lines := map[string]int{} // in the manifest, of rows that can be shown, by their ids
	var from corrected
	if form.Get("act") == actAll {
		for id := range c.edits {
			lines[id] = 0
		}
		for _, row := range c.Rows {
			lines[row.ID] = 0
		}
		read, write := io.Pipe()
		defer func() { _ = read.Close() }() // ends the writer
		all := *c                           // the goroutine may outlive an upload that failed
		go func() { _ = write.CloseWithError(p.writeAll(ctx, write, all, kind, lines, &from)) }()
		body = read
	} else {
		chosen, err := p.chosenRows(ctx, c, kind, form)
		if err != nil {
			return wire.SubmitResponse{}, err
		}
		var text bytes.Buffer
		if err := writeRows(&text, kind, chosen, lines); errors.Is(err, checkm.ErrNoRows) {
			return wire.SubmitResponse{}, wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeInvalid, "no row is to be submitted; correct one, or choose to submit it as it is")
		} else if err != nil {
			return wire.SubmitResponse{}, err
		}
		for _, row := range chosen {
			from.add(row.At)
		}
		body = &text
	}
	spec := specOf(c.Batch)
	upload, err := p.API.SendStream(ctx, correctedName(c.Batch.Name), c.Batch.Collection, body)
	if err != nil {
		return wire.SubmitResponse{}, err
	}
	report, err := judged(ctx, func() (intake.Report, error) {
		return p.API.CheckUpload(ctx, upload.ID, c.Batch.Collection, registry.PayloadType(kind))
	})
	if err == nil && report.Errors > 0 {
		err = p.showWrong(ctx, c, kind, report, lines)
	}
	if err != nil || c.Wrong > 0 {
		return wire.SubmitResponse{}, errors.Join(err, p.API.RemoveUpload(ctx, upload.ID))
	}
	f := formOf(c.Batch)
	f.Upload, f.Type, f.URL, f.ARK, f.LocalIDs, f.Force = upload.ID, string(kind), "", "", "", spec.Force
	request := f.request()
	request.Corrects = from.request(c.Batch.ID)
	return p.submitJudged(ctx, request, "upload "+upload.ID)
}

// corrected collects which rows of a batch a manifest corrects.
type corrected struct {
	rows   int64
	exact  []registry.LineRange // without lines between them; more than can be sent are not collected
	joined []registry.LineRange // with the lines between rows that follow each other
	apart  bool                 // a row that is not corrected follows the last one
}

// add adds the next row.
func (c *corrected) add(line int64) {
	c.rows++
	if n := len(c.exact); n > 0 && c.exact[n-1].Last == line-1 {
		c.exact[n-1].Last = line
	} else if n <= registry.MostLineRanges {
		c.exact = append(c.exact, registry.LineRange{First: line, Last: line})
	}
	if n := len(c.joined); n > 0 && !c.apart {
		c.joined[n-1].Last = line
	} else {
		c.joined = append(c.joined, registry.LineRange{First: line, Last: line})
	}
	c.apart = false
}

// request says which rows are corrected. If they are too many to be named each, lines between them
// count as theirs: then the Registry refuses the request if one of these fails meanwhile.
func (c *corrected) request(batchID string) *registry.Corrects {
	lines := c.exact
	if len(lines) > registry.MostLineRanges {
		lines = c.joined
	}
	return &registry.Corrects{BatchID: batchID, Lines: lines, Rows: c.rows}
}

// showWrong puts the faults of a check to their rows. If one of these is on another page, it shows those
// that are wrong in place of the page.
func (p pages) showWrong(ctx context.Context, c *rowsPage, kind checkm.Kind, report intake.Report, lines map[string]int) error {
	c.Wrong = int(max(report.RowsRefused, 1))
	ids := map[int]string{}
	for id, line := range lines {
		ids[line] = id
	}
	faults := map[string][]intake.Fault{} // by the ids of their rows
	var wrong []string                    // these ids
	away := false
	for _, f := range report.Faults {
		id := ids[f.Line]
		switch {
		case f.Severity != intake.Error:
			continue
		case f.Line == 0 || id == "":
			if len(c.Others) < rowsShown {
				c.Others = append(c.Others, faultOf(f))
			}
			continue
		case len(faults[id]) == 0:
			wrong = append(wrong, id)
			away = away || !slices.ContainsFunc(c.Rows, func(r rowForm) bool { return r.ID == id })
		}
		faults[id] = append(faults[id], f)
	}
	if away {
		slices.SortFunc(wrong, func(a, b string) int { return lines[a] - lines[b] })
		rows, err := p.rowsByID(ctx, *c, kind, wrong[:min(len(wrong), rowsShown)])
		if err != nil {
			return err
		}
		c.pick(rows)
	}
	first := true
	for i := range c.Rows {
		row := &c.Rows[i]
		row.blameOn(faults[row.ID])
		for j := range row.Cells {
			if cell := &row.Cells[j]; first && len(cell.Faults) > 0 {
				cell.First, first = true, false
			}
		}
	}
	return nil
}

// blameOn puts the faults of a check to the cells of the row. They are shown in place of why it had failed.
func (r *rowForm) blameOn(faults []intake.Fault) {
	for _, f := range faults {
		if j := slices.IndexFunc(r.Cells, func(cell cellForm) bool { return cell.Field == f.Field }); j >= 0 {
			r.Cells[j].Faults = append(r.Cells[j].Faults, faultOf(f))
		} else {
			r.Faults = append(r.Faults, faultOf(f))
		}
	}
	for j := range r.Cells {
		if len(faults) > 0 {
			r.Cells[j].Why = ""
		}
	}
}

// faultOf is a fault as pages show it.
func faultOf(f intake.Fault) wire.Fault {
	return wire.Fault{Location: f.Location(), Message: f.Message, Rule: f.Rule, Expected: f.Expected, Found: f.Found, Fix: f.Fix}
}

// writeRows writes rows as a manifest, and notes the line of each.
func writeRows(w io.Writer, kind checkm.Kind, rows []rowForm, lines map[string]int) (err error) {
	d := checkm.NewDraft(w, kind)
	for i := range rows {
		if lines[rows[i].ID], err = d.Write(rows[i].cells(kind)); err != nil {
			return err
		}
	}
	return d.Close()
}

// writeAll writes all failed rows of a batch that no deposit corrects as a manifest, however many there
// are, without those that were left out. It notes the lines of those that are in lines, and adds all to from.
func (p pages) writeAll(ctx context.Context, w io.Writer, c rowsPage, kind checkm.Kind, lines map[string]int, from *corrected) error {
	d := checkm.NewDraft(w, kind)
	for after := ""; ; {
		jobs, err := p.failedRows(ctx, c.Batch.ID, after, "", rowsRead)
		if err != nil {
			return err
		}
		for _, job := range jobs.Rows {
			if job.CorrectedBy != "" || c.edits[job.ID].Out {
				from.apart = true
				continue
			}
			from.add(job.Line)
			row := rowOf(job, kind, c.columns)
			c.edits.apply(&row)
			if _, typed := c.edits[job.ID].Cells["url"]; !typed { // nothing is replaced twice
				row.replace(c.From, c.To)
			}
			line, err := d.Write(row.cells(kind))
			if err != nil {
				return err
			}
			if _, shown := lines[row.ID]; shown {
				lines[row.ID] = line
			}
		}
		if after = jobs.Next; after == "" {
			return d.Close()
		}
	}
}

// correctedName is the name of the manifest that corrects one.
func correctedName(name string) string {
	const suffix = "-corrected"
	base := strings.TrimSuffix(path.Base(name), path.Ext(name))
	return strings.TrimSuffix(base, suffix) + suffix + ".checkm"
}

// judged asks again while a payload is being judged.
func judged[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	until := time.Now().Add(judgeFor)
	for {
		answer, err := ask()
		var problem *wire.Problem
		if !errors.As(err, &problem) || problem.Code != wire.CodeJudging || time.Now().After(until) {
			return answer, err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return answer, ctx.Err()
		}
	}
}
