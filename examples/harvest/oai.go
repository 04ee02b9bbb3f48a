package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// answer is what a source answers: the parts of OAI-PMH 2.0 that a harvest needs.
type answer struct {
	ResponseDate time.Time  `xml:"responseDate"`
	Errors       []oaiError `xml:"error"`
	Granularity  string     `xml:"Identify>granularity"`
	Records      []record   `xml:"ListRecords>record"`
	Token        string     `xml:"ListRecords>resumptionToken"`
}

// record is a record of a source, with its description in Dublin Core.
type record struct {
	Header struct {
		Status     string `xml:"status,attr"` // "deleted", or nothing
		Identifier string `xml:"identifier"`
		Datestamp  string `xml:"datestamp"` // of the last change
	} `xml:"header"`
	Titles   []string `xml:"metadata>dc>title"`
	Creators []string `xml:"metadata>dc>creator"`
	Dates    []string `xml:"metadata>dc>date"`
	Links    []string `xml:"metadata>dc>identifier"`
}

// oaiError is a refusal by a source, such as noRecordsMatch.
type oaiError struct {
	Code string `xml:"code,attr"`
	Text string `xml:",chardata"`
}

// Error implements error.
func (e *oaiError) Error() string {
	return fmt.Sprintf("the source refuses: %s: %s", e.Code, strings.TrimSpace(e.Text))
}

// busyError says that a source wants to be asked later.
type busyError struct{ after time.Duration }

// Error implements error.
func (e *busyError) Error() string { return "the source is busy" }

const (
	mostAnswer   = 64 << 20
	defaultAfter = 5 * time.Minute
)

// ask sends a request to a source. A refusal is an *oaiError, and an answer 503 a *busyError.
func ask(ctx context.Context, c *http.Client, source string, arguments url.Values) (a answer, err error) {
	at, err := url.Parse(source)
	if err != nil {
		return a, fmt.Errorf("read the source's address: %w", err)
	}
	query := at.Query()
	for name, values := range arguments {
		query[name] = values
	}
	at.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return a, fmt.Errorf("ask %s: %w", source, err)
	}
	response, err := c.Do(request)
	if err != nil {
		return a, fmt.Errorf("ask the source: %w", err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return a, &busyError{retryAfter(response.Header.Get("Retry-After"))}
	default:
		return a, fmt.Errorf("the source %s answers %s", source, response.Status)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer+1))
	if err != nil {
		return a, fmt.Errorf("read the answer of %s: %w", source, err)
	}
	if len(text) > mostAnswer {
		return a, fmt.Errorf("the answer of %s is longer than %d bytes", source, mostAnswer)
	}
	if err := xml.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("the answer of %s is no OAI-PMH: %w", source, err)
	}
	if len(a.Errors) > 0 {
		return a, &a.Errors[0]
	}
	return a, nil
}

// retryAfter reads the header of that name. It returns five minutes if there is none in seconds.
func retryAfter(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 24*60*60 {
		return defaultAfter
	}
	return time.Duration(n) * time.Second
}

// stamp writes a time as a source's granularity demands.
func stamp(t time.Time, granularity string) string {
	if granularity == "YYYY-MM-DD" {
		return t.UTC().Format(time.DateOnly)
	}
	return t.UTC().Format(time.RFC3339)
}
