/** Starts Next.js for development. */
import './emulate.ts'

import { spawn } from 'node:child_process'

const args = ['node_modules/next/dist/bin/next', 'dev', ...process.argv.slice(2)]
const next = spawn(process.execPath, args, { stdio: 'inherit' })
next.on('exit', (code) => process.exit(code ?? 1))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => next.kill(signal))
