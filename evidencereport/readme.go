package evidencereport

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/survey"
)

// readme writes the summary, which can be read without anything else.
func (r *writer) readme(w io.Writer) error {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("Evidence report")
	p("===============")
	p("")
	p("Period:      %s to %s, both included, in UTC", r.From.UTC().Format("2006-01-02"), lastDay(r.Query))
	p("Collections: %s", cmp.Or(r.Collection, "all"))
	p("Made by:     Holdfast, from its record of deposits, objects and events")
	if r.Open {
		p("")
		p("The period had not ended when this report was made.")
	}
	p("")
	p("Summary")
	p("-------")
	p("")
	r.summary(p)
	p("")
	p("Files")
	p("-----")
	p("")
	for _, t := range tables() {
		p("%-16s %s", t.name, t.about)
	}
	p("")
	p("Each is a table with a header, UTF-8, with commas between its columns. A cell that")
	p("would begin with = + - or @ begins with an apostrophe. Times are in UTC.")
	p("")
	p("What the words mean")
	p("-------------------")
	p("")
	p("checked          A stored file was read again in the period, every byte, and its digest")
	p("                 was right in this storage at the last such check. A file that was found")
	p("                 damaged and was mended counts as checked; incidents.csv tells of it.")
	p("written          Not checked, but written in the period, and read back then.")
	p("exported         One export of a version, by page, command or API.")
	p("files-read       Single files of a version that a person or program read in one day.")
	p("restore-requested, restore-fetched: a version was brought together for download, and")
	p("                 the file was fetched.")
	p("tombstone        What is left of a deleted object in its storages, as one signed text.")
	p("")
	p("What this report does not say")
	p("-----------------------------")
	p("")
	p("Which storages hold a version, where storages are, and which objects have too few")
	p("copies, is as of the day on which the report was made: no history of it is kept.")
	p("That a storage is off-site is what an admin said. fixity.csv leaves out objects that")
	p("were deleted after the period. Accesses are recorded since Holdfast keeps an access")
	p("log; whoever reads a storage without Holdfast is not in it.")
	p("backups.csv has what the service made by itself, and has \"no\" under database where that")
	p("is PostgreSQL's, which has its own backups. Backups by other means, how long backups are")
	p("kept, and whether one was ever restored are for the institution to add.")
	p("programs.csv has those that announced themselves as workers, from the day on which the")
	p("Registry began to note them.")
	p("Rights, appraisal and the migration of formats are decisions of the institution;")
	p("policies.csv has what it recorded of them.")
	p("")
	p("Verify")
	p("------")
	p("")
	p("  sha256sum -c %s", ManifestFile)
	p("  holdfast check FOLDER --key keys.pem")
	p("")
	p("%s names each file with its SHA-256. %s has the", ManifestFile, SignatureFile)
	p("SHA-256 of that manifest, signed as Holdfast's receipts are, if there was a key; it is")
	p("verified with openssl as docs/receipt.md says.")
	_, err := io.WriteString(w, b.String())
	return err
}

// summary writes the totals.
func (r *writer) summary(p func(string, ...any)) {
	var start, end survey.Amount
	for _, h := range r.counts.Holdings {
		start, end = start.Plus(h.Start), end.Plus(h.End)
	}
	p("%-34s %20s %20s", "", "at the start", "at the end")
	for _, line := range []struct {
		name       string
		start, end int64
	}{{"objects", start.Objects, end.Objects}, {"versions", start.Versions, end.Versions}, {"files", start.Files, end.Files}, {"bytes", start.Bytes, end.Bytes}} {
		p("%-34s %20d %20d", line.name, line.start, line.end)
	}
	p("")
	var in survey.Ingest
	for _, i := range r.counts.Ingests {
		in.First, in.Updates, in.FilesWritten, in.BytesAdded = in.First+i.First, in.Updates+i.Updates, in.FilesWritten+i.FilesWritten, in.BytesAdded+i.BytesAdded
	}
	p("%-34s %20d", "objects ingested", in.First)
	p("%-34s %20d", "objects updated (versions)", in.Updates)
	p("%-34s %20d", "files ingested", in.FilesWritten)
	p("%-34s %20d", "bytes ingested", in.BytesAdded)
	failed := map[registry.ErrorClass]int64{}
	for _, f := range r.counts.Failures {
		failed[f.Class] += f.Times
	}
	for _, class := range slices.Sorted(maps.Keys(failed)) {
		p("%-34s %20d", "failures of class "+cmp.Or(string(class), "unknown"), failed[class])
	}
	p("")
	for _, c := range r.counts.Coverage {
		p("storage %s: %d of %d files (%s) and %d of %d bytes (%s) read in the period",
			c.Storage, c.Files.Checked+c.Files.Written, c.Files.All, percentText(c.Files), c.Bytes.Checked+c.Bytes.Written, c.Bytes.All, percentText(c.Bytes))
	}
	p("%-34s %20d", "fixity checks that found damage", r.counts.Incidents)
	p("%-34s %20d", "events of damage and mends", r.incidents)
	p("")
	for _, status := range slices.Sorted(maps.Keys(r.deletions)) {
		p("%-34s %20d", "deletions "+string(status), r.deletions[status])
	}
	for _, kind := range slices.Sorted(maps.Keys(r.accesses)) {
		p("%-34s %20d", "accesses "+kind, r.accesses[kind])
	}
	p("%-34s %20d", "backups made and verified", r.backups)
	if r.longest > 0 {
		p("%-34s %20.1f", "most hours between two of them", r.longest.Hours())
	}
	p("%-34s %20d", "collections with a profile", len(r.counts.Policies))
	p("%-34s %20d", "receipt keys", len(r.counts.Keys))
}

// percentText returns how much of an amount was read in the period.
func percentText(s survey.Share) string {
	if s.All == 0 {
		return "none"
	}
	return fmt.Sprintf("%.2f %%", 100*float64(s.Checked+s.Written)/float64(s.All))
}
