#!/usr/bin/env node
import { once } from 'node:events'

// Loaded after this check: the package does not run on older versions, and their errors would not say why.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(
    `adk-stream-protocol needs Node 20.19 or later. This is Node ${process.versions.node}.\n`,
  )
  process.exitCode = 2
} else {
  const { runCli } = await import('./run-cli.ts')
  process.exitCode = await runCli(process.argv.slice(2), {
    print: async (line) => {
      // Wait if the reader of stdout is slower than the database.
      if (!process.stdout.write(`${line}\n`)) await once(process.stdout, 'drain')
    },
    printError: (line) => process.stderr.write(`${line}\n`),
  })
}
