import { spawn } from 'node:child_process'

/** Runs a command with environment variables, in every shell: `tsx scripts/with.ts LONG_TESTS=1 vitest run`. */
const args = process.argv.slice(2)
const start = args.findIndex((arg) => !/^[A-Z_]+=/.test(arg))
const variables = args.slice(0, start).map((arg) => arg.split('=') as [string, string])
const [command = '', ...rest] = args.slice(start).map((arg) => JSON.stringify(arg))

// npm adds the tools of the workspace to the path. On Windows they are scripts, which need a shell.
const child = spawn(command, rest, {
  shell: true,
  stdio: 'inherit',
  env: { ...process.env, ...Object.fromEntries(variables) },
})
child.on('exit', (code) => process.exit(code ?? 1))
