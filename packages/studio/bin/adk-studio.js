#!/usr/bin/env node
// The command `dev` of the library, which finds the page in this package.
process.argv.splice(2, 0, 'dev')
await import('adk-stream-protocol/cli')
