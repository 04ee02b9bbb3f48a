package admin

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/reportfile"
	"github.com/holdfast/holdfast/web/ui/page"
)

// auditPage is the content of the audit list.
type auditPage struct {
	Actor, Types string // as typed
	Since, Until string // days, the last one included
	Rows         []auditRow
	Prev, Next   string
	CSV          string // address of the whole list as a file
	Known        []string
}

// auditRow is an entry with the page of what it is about.
type auditRow struct {
	registry.Event

	On, URL string            // what it is about; URL "": there is no page
	Item    registry.WorkItem // that it is about; without ID: it is about none, or that was purged
	Refusal *registry.Refusal // nil: it was no refusal
}

// day is the format of a day in addresses and forms.
const day = "2006-01-02"

// auditQuery reads which entries an address asks for. Days are those of the viewer's time zone.
func (p pages) auditQuery(r *http.Request) (q registry.AuditQuery, err error) {
	values := r.URL.Query()
	q = registry.AuditQuery{Actor: strings.TrimSpace(values.Get("actor")), Types: words(values.Get("types")), After: values.Get("after"), Before: values.Get("before")}
	for name, at := range map[string]*time.Time{"since": &q.Since, "until": &q.Until} {
		text := values.Get(name)
		if text == "" {
			continue
		}
		if *at, err = time.ParseInLocation(day, text, page.ZoneOf(r)); err != nil {
			return q, page.Invalid("%.50q is not a day, such as 2027-01-31", text)
		}
	}
	if !q.Until.IsZero() {
		q.Until = q.Until.AddDate(0, 0, 1) // the day is included
	}
	return q, nil
}

// words are the words of a text, which spaces and commas separate.
func words(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ' ' })
}

func (p pages) audit(r *http.Request) (page.Page, error) {
	q, err := p.auditQuery(r)
	if err != nil {
		return page.Page{}, err
	}
	list, err := p.API.Audit(r.Context(), q)
	if err != nil {
		return page.Page{}, err
	}
	values := r.URL.Query()
	content := auditPage{
		Actor: q.Actor, Types: strings.Join(q.Types, " "), Since: values.Get("since"), Until: values.Get("until"), Known: auditTypes(),
	}
	var ids []string
	for _, e := range list.Rows {
		row := auditRowOf(e)
		if isItem(row.On) {
			ids = append(ids, row.On)
		}
		content.Rows = append(content.Rows, row)
	}
	items, err := p.ItemsOf(r.Context(), ids)
	if err != nil {
		return page.Page{}, err
	}
	for i, row := range content.Rows {
		content.Rows[i].Item = items[row.On]
	}
	for _, name := range []string{"after", "before"} {
		values.Del(name)
	}
	content.CSV = "/audit.csv?" + values.Encode()
	if list.Next != "" {
		content.Next = auditURL(values, "after", list.Next)
	}
	if list.Prev != "" {
		content.Prev = auditURL(values, "before", list.Prev)
	}
	return page.Page{Name: "audit", Title: p.Texts(r).T("Audit"), Section: "audit", Content: content}, nil
}

// auditURL is the address of a page of the list.
func auditURL(values url.Values, name, cursor string) string {
	return "/audit?" + values.Encode() + "&" + url.Values{name: {cursor}}.Encode()
}

// auditTypes are the types of entries that people look for, as suggestions.
func auditTypes() []string {
	return []string{
		registry.EventRefused, string(registry.ActSubmit), string(registry.ActRequeue), string(registry.ActCancel), string(registry.ActAbort),
		string(registry.ActHold), string(registry.ActUnhold), registry.EventCollection, registry.EventTokenCreated, registry.EventTokenRevoked,
		registry.EventSignedIn, registry.EventSignedOut, registry.EventLinkMade, registry.EventCredentialSet, registry.EventCredentialRemoved,
		registry.EventSubscriptionSet, registry.EventSubscriptionRewound, registry.EventScheduleSet, registry.EventScheduleRun, registry.EventCheckAskedFor,
		registry.EventExported, registry.EventFilesRead, registry.EventRestoreFetched, registry.EventBackupMade,
	}
}

// auditRowOf finds what an entry is about.
func auditRowOf(e registry.Event) auditRow {
	row := auditRow{Event: e, On: e.ItemID}
	if e.Type == registry.EventRefused {
		var refusal registry.Refusal
		if json.Unmarshal(e.Data, &refusal) == nil {
			row.Refusal, row.On = &refusal, refusal.Operation
		}
		return row
	}
	if name, ok := registry.OwningSubscription(e.ItemID); ok {
		row.On, row.URL = name, subscriptionURL(name)
		return row
	}
	kind, name, _ := strings.Cut(e.ItemID, ":")
	namespace, process, isProcess := strings.Cut(name, "/")
	switch {
	case kind == "schedule":
		row.On, row.URL = name, "/schedules/"+url.PathEscape(name)
	case kind == "process" && isProcess:
		row.On, row.URL = name, "/processes/"+url.PathEscape(namespace)+"/"+url.PathEscape(process)
	case e.Type == registry.EventCollection || e.Type == registry.EventCredentialSet || e.Type == registry.EventCredentialRemoved:
		row.URL = collectionURL(e.ItemID)
	case e.Type == registry.EventTokenCreated || e.Type == registry.EventTokenRevoked || e.Type == registry.EventLinkMade:
		row.On, row.URL = tokenName(e), "/tokens#token-"+url.PathEscape(e.ItemID)
	case strings.HasPrefix(e.ItemID, "ark:"):
		row.URL = page.ObjectURL(e.ItemID)
	case isItem(e.ItemID):
		row.URL = "/items/" + e.ItemID
	}
	return row
}

// isItem reports whether an entry that is about this is about an item: those have UUIDs.
func isItem(on string) bool { return strings.Count(on, "-") == 4 && len(on) == 36 }

// tokenName is the name of the token that an entry is about, or else its id.
func tokenName(e registry.Event) string {
	var data struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(e.Data, &data) != nil || data.Name == "" {
		return e.ItemID
	}
	return data.Name
}

// pageSent is the time in which a reader must receive a page of the list.
const pageSent = time.Minute

// auditCSV sends the whole list as a file for spreadsheets, page by page. If it breaks off, so does
// the download: half a list must not look like a whole one.
func (p pages) auditCSV(w http.ResponseWriter, r *http.Request) {
	const atOnce = 500
	q, err := p.auditQuery(r)
	if err != nil {
		p.Fail(w, r, err)
		return
	}
	q.After, q.Before, q.Limit = "", "", atOnce
	list, err := p.API.Audit(r.Context(), q)
	if err != nil {
		p.Fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="audit.csv"`)
	w.Header().Set("Cache-Control", "no-store")
	out, control := csv.NewWriter(w), http.NewResponseController(w)
	err = out.Write([]string{"time", "actor", "type", "on", "collection", "details", "id", "cursor"})
	for err == nil {
		_ = control.SetWriteDeadline(time.Now().Add(pageSent)) // if this fails, the server's own deadline holds
		for _, e := range list.Rows {
			cells := []string{e.At.UTC().Format(time.RFC3339Nano), e.Actor, e.Type, auditRowOf(e).On, e.Collection, string(e.Data), e.ID, strconv.FormatInt(e.Seq, 10)}
			for i := range cells {
				cells[i] = reportfile.Cell(cells[i])
			}
			if err = out.Write(cells); err != nil {
				break
			}
		}
		out.Flush()
		if err = out.Error(); err != nil || list.Next == "" {
			break
		}
		q.After = list.Next
		list, err = p.API.Audit(r.Context(), q)
	}
	if err != nil {
		p.Log.WarnContext(r.Context(), "the audit list broke off", "err", fmt.Sprint(err))
		panic(http.ErrAbortHandler)
	}
}
