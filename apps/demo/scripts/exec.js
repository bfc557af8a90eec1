#!/usr/bin/env node
import { spawn } from 'node:child_process'

/**
 * Runs a command for npm scripts on Windows. In other shells, `exec` replaces the shell by the command, so that the command receives
 * the signals that npm passes on.
 */
const [command = '', ...args] = process.argv.slice(2)
spawn(command, args, { stdio: 'inherit' }).on('exit', (code) => process.exit(code ?? 1))
