package client

import (
	"context"
	"io"
	"net/http"
)

// EvidenceQuery selects an evidence report. Days are YYYY-MM-DD, in UTC, and both are included.
type EvidenceQuery struct {
	From, To   string
	Collection string // "": all
}

// EvidenceReport returns an evidence report as a zip. The caller must close it. It has no time limit but
// ctx's, which also bounds the reading.
func (c *Client) EvidenceReport(ctx context.Context, q EvidenceQuery) (io.ReadCloser, error) {
	answer, err := c.do(ctx, request{method: http.MethodGet, path: "/evidence-report", query: values("from", q.From, "to", q.To, "collection", q.Collection)})
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}
