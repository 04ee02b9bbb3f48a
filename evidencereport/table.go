package evidencereport

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/survey"
)

// tables are the CSV files of a report, in their order.
func tables() []table {
	return []table{
		{"holdings.csv", "objects, versions, files and bytes by collection, at the period's start and end", []string{
			"collection", "objects_at_start", "objects_at_end", "versions_at_start", "versions_at_end", "files_at_start", "files_at_end", "bytes_at_start", "bytes_at_end",
		}, func(_ context.Context, r *writer, row func(...any) error) error {
			return each(r.counts.Holdings, func(h survey.Holding) error {
				return row(h.Collection, h.Start.Objects, h.End.Objects, h.Start.Versions, h.End.Versions, h.Start.Files, h.End.Files, h.Start.Bytes, h.End.Bytes)
			})
		}},
		{
			"formats.csv", "file formats (PRONOM) of all newest versions, at the period's end",
			[]string{"puid", "name", "version", "media_type", "files", "bytes"},
			func(_ context.Context, r *writer, row func(...any) error) error {
				return each(r.counts.Formats, func(f survey.Format) error { return row(f.PUID, f.Name, f.Version, f.MIMEType, f.Files, f.Bytes) })
			},
		},
		{"ingests.csv", "versions that were recorded in the period, with the files that came with them", []string{
			"collection", "first_versions", "updates", "files", "bytes",
		}, func(_ context.Context, r *writer, row func(...any) error) error {
			return each(r.counts.Ingests, func(i survey.Ingest) error {
				return row(i.Collection, i.First, i.Updates, i.FilesWritten, i.BytesAdded)
			})
		}},
		{"failures.csv", "deposits that failed in the period, by cause; one that failed twice counts twice", []string{
			"collection", "stage", "class", "cause", "times", "title",
		}, func(_ context.Context, r *writer, row func(...any) error) error {
			return each(r.counts.Failures, func(f survey.Failure) error {
				return row(f.Collection, string(f.Stage), string(f.Class), f.Cause, f.Times, f.Title)
			})
		}},
		{"fixity.csv", "how much of each storage was read again and found right in the period", []string{
			"storage", "files", "files_checked", "files_written_in_period", "files_checked_or_written_percent",
			"bytes", "bytes_checked", "bytes_written_in_period", "bytes_checked_or_written_percent",
		}, func(_ context.Context, r *writer, row func(...any) error) error {
			return each(r.counts.Coverage, func(c survey.Coverage) error {
				return row(c.Storage, c.Files.All, c.Files.Checked, c.Files.Written, percent(c.Files.Checked+c.Files.Written, c.Files.All),
					c.Bytes.All, c.Bytes.Checked, c.Bytes.Written, percent(c.Bytes.Checked+c.Bytes.Written, c.Bytes.All))
			})
		}},
		{"incidents.csv", "damage that was found and what was mended, event by event", []string{
			"time", "collection", "object", "version", "type", "outcome", "detail", "program", "event", "number_in_chain", "item",
		}, writeIncidents},
		{"deletions.csv", "deletions with who asked, who approved, why, and the digest of the tombstone", []string{
			"object", "collection", "status", "reason", "asked_by", "asked_at", "approved_by", "approved_at", "withdrawn_by", "withdrawn_at", "deleted_at",
			"last_version", "last_inventory", "last_files", "tombstone_sha256", "item",
		}, writeDeletions},
		{"access.csv", "who exported, restored or read which object, when and how", []string{
			"time", "who", "what", "object", "version", "collection", "by", "form", "export", "first_file", "restore", "reason", "event",
		}, writeAccesses},
		{
			"copies.csv", "how many versions of each collection are in how many storages",
			[]string{"collection", "storages", "versions"},
			func(_ context.Context, r *writer, row func(...any) error) error {
				return each(r.counts.Copies, func(c survey.Copies) error { return row(c.Collection, c.Copies, c.Versions) })
			},
		},
		{
			"storages.csv", "where the storages are, and whether they count as off-site",
			[]string{"storage", "address", "known_to_this_service", "state", "off_site", "objects"},
			func(_ context.Context, r *writer, row func(...any) error) error {
				for _, s := range r.Storages {
					if err := row(s.Name, s.Address, yesNo(s.Address != ""), string(s.State), yesNo(s.Offsite), s.Objects); err != nil {
						return err
					}
				}
				return each(r.counts.Coverage, func(c survey.Coverage) error {
					if slices.ContainsFunc(r.Storages, func(s Storage) bool { return s.Name == c.Storage }) {
						return nil
					}
					return row(c.Storage, "", "no", "", "", "")
				})
			},
		},
		{
			"copypolicies.csv", "how many objects have the copies that the profile of their collection asks for",
			[]string{"collection", "copies", "offsite_copies", "objects", "with_these_copies", "with_too_few"},
			func(_ context.Context, r *writer, row func(...any) error) error {
				return each(r.Copies, func(c registry.CollectionCopies) error {
					return row(c.Collection, c.Copies, c.Offsite, c.Objects, c.Objects-c.Short.Objects, c.Short.Objects)
				})
			},
		},
		{"policies.csv", "the profile that each collection had at the period's end", []string{
			"collection", "profile_version", "since", "set_by", "owner", "storages", "copies", "offsite_copies", "virus_scan", "rights_basis", "rights_statement", "rights_uri",
			"preservation_level", "embargo_until", "description",
		}, func(_ context.Context, r *writer, row func(...any) error) error {
			return each(r.counts.Policies, policyRow(row))
		}},
		{
			"software.csv", "programs that made preservation events in the period, with their versions",
			[]string{"program", "first_event", "last_event", "events"},
			func(_ context.Context, r *writer, row func(...any) error) error {
				return each(r.counts.Software, func(s survey.Software) error { return row(s.Name, s.First, s.Last, s.Events) })
			},
		},
		{
			"programs.csv", "versions of Holdfast's workers, and of programs with functions, that ran in the period",
			[]string{"program", "version", "first_day", "last_day", "days"},
			func(_ context.Context, r *writer, row func(...any) error) error {
				return each(r.counts.Programs, func(p survey.Program) error {
					return row(string(p.Kind), p.Version, p.First.Format(time.DateOnly), p.Last.Format(time.DateOnly), p.Days)
				})
			},
		},
		{"backups.csv", "backups of the record that the service made by itself, each read back as a whole and found right", []string{
			"time", "backup", "place", "bytes", "database", "objects", "versions", "program", "event",
		}, writeBackups},
		{
			"keys.csv", "public keys that verify receipts, segments of events, checkpoints and tombstones",
			[]string{"key", "public_key", "first_used"},
			func(_ context.Context, r *writer, row func(...any) error) error {
				return each(r.counts.Keys, func(k survey.Key) error { return row(k.ID, k.PublicKey, k.FirstUsed) })
			},
		},
	}
}

// each calls write for the values, until a call fails.
func each[T any](values []T, write func(T) error) error {
	for _, v := range values {
		if err := write(v); err != nil {
			return err
		}
	}
	return nil
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// policyRow writes the row of a profile.
func policyRow(row func(...any) error) func(survey.Policy) error {
	return func(p survey.Policy) error {
		storages, rights := p.Profile.StorageNames(), registry.Rights{}
		if p.Profile.Terms.Rights != nil {
			rights = *p.Profile.Terms.Rights
		}
		policy := p.Profile.Policy()
		return row(p.Collection, p.Version, p.Since, p.By, p.Profile.Owner, strings.Join(storages, " "), policy.Copies, policy.Offsite, yesNo(p.Profile.Scan), string(rights.Basis), rights.Statement, rights.URI,
			p.Profile.Terms.PreservationLevel, p.Profile.Terms.EmbargoUntil, p.Profile.Description)
	}
}

func writeIncidents(ctx context.Context, r *writer, row func(...any) error) error {
	return r.Source.Incidents(ctx, r.Query, func(i survey.Incident) error {
		r.incidents++
		return row(i.At, i.Collection, i.ObjectID, i.Version, i.Type, i.Outcome, i.Detail, i.Agent, i.ID, i.Seq, i.ItemID)
	})
}

func writeDeletions(ctx context.Context, r *writer, row func(...any) error) error {
	r.deletions = map[registry.DeletionStatus]int64{}
	return r.Source.PeriodDeletions(ctx, r.Query, func(d survey.Deletion) error {
		r.deletions[d.Status]++
		last := any("")
		if d.Last.Version > 0 {
			last = d.Last.Version
		}
		return row(d.ObjectID, d.Collection, string(d.Status), d.Reason, d.AskedBy, d.AskedAt, d.ApprovedBy, d.ApprovedAt, d.WithdrawnBy, d.WithdrawnAt, d.DeletedAt,
			last, d.Last.Inventory, d.Last.Files, d.Tombstone, d.ItemID)
	})
}

func writeAccesses(ctx context.Context, r *writer, row func(...any) error) error {
	r.accesses = map[string]int64{}
	return r.Source.Accesses(ctx, r.Query, func(a survey.Access) error {
		r.accesses[a.Kind]++
		number := any("")
		if a.Restore > 0 {
			number = a.Restore
		}
		return row(a.At, a.Actor, a.Kind, a.ObjectID, a.Version, a.Collection, string(a.By), a.Form, a.Export, a.File, number, a.Reason, a.ID)
	})
}

func writeBackups(ctx context.Context, r *writer, row func(...any) error) error {
	return r.Source.Backups(ctx, r.Query, func(b survey.Backup) error {
		if r.backups++; r.backups > 1 {
			r.longest = max(r.longest, b.At.Sub(r.newest))
		}
		r.newest = b.At
		return row(b.At, b.Name, b.Place, b.Bytes, yesNo(b.Database), b.Objects, b.Versions, b.Program, b.ID)
	})
}
