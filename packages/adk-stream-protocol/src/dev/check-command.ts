import { fork } from 'node:child_process'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

import { defer } from '../shared/async.ts'
import { type CommandOutput, runCommand } from '../shared/command.ts'
import type { CheckReply, CheckRequest } from './check-child.ts'
import { describeReport } from './describe-report.ts'
import { findAgentFiles } from './load/find-agents.ts'
import { OWN_VERSION } from './load/versions.ts'

const USAGE = `Usage:
  adk-stream-protocol check [path] [options]

Loads the agent in a file or folder, the current one by default, and lists its models, its tools, which of them need approval
and why, what cannot wait for an approval and why, its MCP servers, and the versions of Node and ADK. Calls no model and no tool.
A tool may also call requestConfirmation() while it runs; that cannot be known before.

A folder contains agent.ts, agent.js, app.ts or app.js, itself, in src, or in its sub-folders. The file exports rootAgent, app, an agent
under any other name, or a bridge or its options as bridge or options. TypeScript needs no build.

  --export <name>    the export, if the file has several agents
  --env <file>       a file with environment variables; may be repeated. Default: .env beside the agent and in the current folder
  --policy <file>    a file that exports approvals: which calls need approval
  --connect          connects to the MCP servers of the agent and lists their tools
  --json             prints one JSON object

The exit code is 0 if the agent can be served, 1 if it cannot, and 2 if it could not be loaded or the command failed.`

const OPTIONS = {
  export: { type: 'string' },
  // Not `env-file`: Node 20 takes that option for itself, also after the name of the program.
  env: { type: 'string', multiple: true },
  policy: { type: 'string' },
  connect: { type: 'boolean' },
  json: { type: 'boolean' },
} as const

/** An agent that was checked. */
export interface CheckedAgent {
  /** Relative to the current folder. */
  readonly file: string
  readonly reply: CheckReply
}

/** Runs `check`. Returns the exit code. */
export function runCheckCommand(args: string[], output: CommandOutput): Promise<number> {
  return runCommand({ usage: USAGE, args }, output, async () => {
    const { positionals, values } = parseArgs({ args, allowPositionals: true, options: OPTIONS })
    const [, place = '.', ...others] = positionals
    if (others.length > 0) return undefined
    const cwd = process.cwd()
    const checked: CheckedAgent[] = []
    for (const file of findAgentFiles(place, cwd)) {
      const reply = await checkFile({
        file,
        exportName: values.export,
        envFiles: values.env,
        policyFile: values.policy === undefined ? undefined : path.resolve(cwd, values.policy),
        connect: values.connect ?? false,
      })
      checked.push({ file: path.relative(cwd, file) || file, reply })
    }
    if (values.json ?? false) await output.print(JSON.stringify(toJson(checked), undefined, 2))
    else
      for (const [index, each] of checked.entries())
        await printAgent(each, output, { isFirst: index === 0 })
    return Math.max(...checked.map(({ reply }) => exitCodeOf(reply)))
  })
}

function exitCodeOf(reply: CheckReply): number {
  if (reply.type === 'refused') return 2
  return reply.report.problems.length > 0 ? 1 : 0
}

function toJson(checked: readonly CheckedAgent[]): object {
  return {
    version: OWN_VERSION,
    node: process.versions.node,
    agents: checked.map(({ file, reply }) => {
      if (reply.type === 'refused')
        return { file, error: { code: reply.code, message: reply.message } }
      const { exportName, adk, report } = reply
      return { file, export: exportName, adk, ...report }
    }),
  }
}

async function printAgent(
  { file, reply }: CheckedAgent,
  { print, printError }: CommandOutput,
  { isFirst }: { readonly isFirst: boolean },
): Promise<void> {
  if (reply.type === 'refused') return printError(reply.message)
  if (!isFirst) await print('')
  for (const line of describeReport(file, reply)) await print(line)
}

/**
 * Loads an agent in a process of its own: the loader hooks apply to the whole process, and the agent may end it, print, or keep it
 * running.
 */
function checkFile(request: CheckRequest): Promise<CheckReply> {
  const extension = path.extname(fileURLToPath(import.meta.url))
  const program = fileURLToPath(new URL(`./check-child${extension}`, import.meta.url))
  const child = fork(program, [JSON.stringify(request)], {
    // What the agent prints is not a part of the report.
    stdio: ['ignore', 2, 2, 'ipc'],
    execArgv: [...process.execArgv, '--disable-warning=MODULE_TYPELESS_PACKAGE_JSON'],
  })
  const shown = path.relative(process.cwd(), request.file) || request.file
  const { promise, resolve } = defer<CheckReply>()
  const refuse = (message: string): void => resolve({ type: 'refused', code: 'ended', message })
  // The program sends nothing else.
  child.on('message', (reply) => resolve(reply as CheckReply))
  child.on('error', ({ message }) => refuse(message))
  child.on('exit', (code, signal) => {
    const end = (): void =>
      refuse(`${shown}: ended the process while it was loaded (${signal ?? `code ${code}`}).`)
    // A message that was sent before may arrive later.
    if (child.connected) child.once('disconnect', end)
    else end()
  })
  return promise
}
