#!/usr/bin/env node
import { once } from 'node:events'

import { runCli } from '../store/run-cli.ts'

process.exitCode = await runCli(process.argv.slice(2), {
  print: async (line) => {
    // Wait if the reader of stdout is slower than the database.
    if (!process.stdout.write(`${line}\n`)) await once(process.stdout, 'drain')
  },
  printError: (line) => process.stderr.write(`${line}\n`),
})
