#!/usr/bin/env node
// A file of its own, because npm links commands before the TypeScript is built in a fresh clone.
import '../dist/cli.js'
