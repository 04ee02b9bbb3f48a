// Package awstest runs services of AWS on this machine.
package awstest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// Region is that of all requests.
const Region = "eu-central-1"

// Serve runs a service until the end of the test, whose environment tells the SDK where it is. name is the
// service's in AWS_ENDPOINT_URL_NAME. The SDK does not repeat requests to it.
func Serve(t *testing.T, name string, handler http.HandlerFunc) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_" + name: server.URL, "AWS_REGION": Region, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent", "AWS_MAX_ATTEMPTS": "1",
	} {
		t.Setenv(name, value)
	}
}

// Config returns the configuration of a client whose requests another one of the test takes.
func Config(client aws.HTTPClient) aws.Config {
	return aws.Config{Region: Region, HTTPClient: client, Credentials: credentials.NewStaticCredentialsProvider("key", "secret", "")}
}
