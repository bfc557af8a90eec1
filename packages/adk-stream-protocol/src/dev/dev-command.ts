import { createServer } from 'node:net'
import path from 'node:path'
import { parseArgs } from 'node:util'

import { defer } from '../shared/async.ts'
import { type CommandOutput, runCommand } from '../shared/command.ts'
import { createDataFolder } from './data-folder.ts'
import { AgentProcess } from './page/agent-process.ts'
import { AgentReloader, type Reload } from './page/agent-reloader.ts'
import { createDevEmulator } from './page/dev-emulator.ts'
import type { DevRequest, LoadedAgents } from './page/dev-messages.ts'
import { describeReload, describeStart } from './page/describe-dev.ts'
import { endWithNpm } from './end-with-parent.ts'
import { listEnvFiles } from './load/environment.ts'
import { createFileWatcher } from './page/file-watcher.ts'
import { findAllAgentFiles } from './load/find-agents.ts'
import { findStudio } from './load/find-package.ts'
import { listen, readPort } from './listen.ts'
import { hasCredentials } from './page/model-endpoint.ts'
import { openBrowser } from './page/open-browser.ts'
import { DEVELOPER, readPerson } from './page/people.ts'

const USAGE = `Usage:
  adk-stream-protocol dev [path…] [options]

Opens a page on the agents in files or folders, the current one by default: chat, voice, approvals, forms, sign-ins and an inspector.
Loads the agents again when one of their files is saved: running replies end with the old code, pending approvals stay. TypeScript needs
no build. Without a key, an emulator replies in place of the model. The server can be reached from this machine only.

  --port <number>      the port. Default: 8000, or the next free one
  --open               opens the page in a browser
  --model <which>      emulator or gemini. Default: gemini if there is a key, such as GOOGLE_API_KEY in .env
  --live-model <name>  the model of voice conversations
  --scenario <file>    YAML or JSON file with replies of the emulator
  --data <folder>      the folder of chats and approvals. Default: .adk
  --database <url>     a PostgreSQL database for them
  --env <file>         a file with environment variables; may be repeated. Default: .env beside the agent and in the current folder
  --policy <file>      a file that exports approvals: which calls need approval
  --as <name[:roles]>  a person, such as alice:manager,finance; may be repeated: the page then switches between them
  --export <name>      the export, if the file has several agents
  --no-reload          loads the agents once
  --inspect[=port]     lets a debugger connect to the process of the agents

The exit code is 0 when the server is stopped, and 2 if it cannot start.`

const OPTIONS = {
  port: { type: 'string' },
  open: { type: 'boolean' },
  model: { type: 'string' },
  'live-model': { type: 'string' },
  scenario: { type: 'string' },
  data: { type: 'string' },
  database: { type: 'string' },
  env: { type: 'string', multiple: true },
  policy: { type: 'string' },
  as: { type: 'string', multiple: true },
  export: { type: 'string' },
  'no-reload': { type: 'boolean' },
  inspect: { type: 'string' },
} as const

const HOST = '127.0.0.1'
const LIVE_MODEL = 'gemini-2.5-flash-native-audio-preview-12-2025'

/** How long running replies may take when the server is stopped, in ms. */
const DRAIN_MS = 5_000

/** Runs `dev` until a signal ends it. Returns the exit code. */
export function runDevCommand(args: string[], output: CommandOutput): Promise<number> {
  return runCommand({ usage: USAGE, args }, output, async () => {
    const { positionals, values } = parseArgs({
      // `--inspect` has an optional value, which parseArgs does not know.
      args: args.map((each) => (each === '--inspect' ? '--inspect=9229' : each)),
      allowPositionals: true,
      options: OPTIONS,
    })
    const [, ...places] = positionals
    const cwd = process.cwd()
    const files = findAllAgentFiles(places, cwd)
    const [entry = ''] = files
    findStudio(entry)
    const resolve = (file: string | undefined): string | undefined =>
      file === undefined ? undefined : path.resolve(cwd, file)
    const database = createDataFolder(values.data ?? '.adk', { cwd, isIgnored: true })
    const request: DevRequest = {
      files,
      exportName: values.export,
      envFiles: values.env,
      policyFile: resolve(values.policy),
      model: readModel(values.model),
      liveModel: values['live-model'] ?? LIVE_MODEL,
      database: values.database ?? database,
      artifacts: path.join(path.dirname(database), 'artifacts'),
      people: values.as === undefined ? [DEVELOPER] : values.as.map(readPerson),
    }
    return serve(request, output, {
      port: readPort(values.port),
      open: values.open ?? false,
      reloads: !(values['no-reload'] ?? false),
      execArgv: values.inspect === undefined ? [] : [`--inspect=${values.inspect}`],
      scenarioFile: resolve(values.scenario),
    })
  })
}

function readModel(text: string | undefined): DevRequest['model'] {
  if (text === undefined || text === 'emulator' || text === 'gemini') return text
  throw new Error(
    `--model ${text}: choose emulator or gemini. The agent names its own model in its code.`,
  )
}

interface ServeOptions {
  readonly port: number | undefined
  readonly open: boolean
  readonly reloads: boolean
  readonly execArgv: readonly string[]
  readonly scenarioFile: string | undefined
}

async function serve(
  request: DevRequest,
  { print, printError }: CommandOutput,
  options: ServeOptions,
): Promise<number> {
  const { reloads, execArgv, scenarioFile } = options
  const cwd = process.cwd()
  const [entry = ''] = request.files
  const emulator = createDevEmulator(entry, scenarioFile)
  const ended = defer<number>()
  let before: LoadedAgents | undefined
  let changed: readonly string[] = []
  const envFiles = request.envFiles ?? listEnvFiles(entry, cwd)
  const alwaysWatched = [...request.files, ...envFiles, request.policyFile, scenarioFile].flatMap(
    (file) => (file === undefined ? [] : path.resolve(cwd, file)),
  )
  const onLoaded = async ({ result, ms }: Reload): Promise<void> => {
    const files = result.type === 'ready' ? result.loaded.files : result.files
    // After an error, a file that was imported before may be the cause.
    const known = result.type === 'ready' ? [] : (before?.files ?? [])
    if (reloads) watcher.watch([...new Set([...alwaysWatched, ...files, ...known])])
    if (result.type === 'failed') {
      printError(`✖ ${result.problem.message}`)
      if (result.problem.codeFrame !== undefined) printError(result.problem.codeFrame)
      if (before) printError('  The page still uses the previous version.')
      else if (reloads) printError(`  ${url} continues when the file is saved without the error.`)
      else ended.resolve(2)
      return
    }
    const { loaded } = result
    const lines = before
      ? describeReload(loaded, { before, ms, changed })
      : describeStart(loaded, { url, request, cwd, watches: reloads })
    before = loaded
    for (const line of lines) await print(line)
  }
  const reloader = new AgentReloader({
    request,
    start: () => new AgentProcess({ entry, startEmulator: emulator.start, execArgv }),
    onLoaded: (reload) => void onLoaded(reload),
    onEnded: () => printError('✖ The process of the agent has ended.'),
    standby: reloads,
  })
  const server = createServer({ pauseOnConnect: true }, (socket) => reloader.serve(socket))
  const port = await listen(server, { host: HOST, port: options.port })
  const url = `http://localhost:${port}`
  const watcher = createFileWatcher((files) => {
    changed = files.map((file) => path.relative(cwd, file))
    if (scenarioFile !== undefined && files.includes(scenarioFile)) emulator.change()
    void reloader.reload()
  })
  if (reloads) watcher.watch(alwaysWatched)
  let isEnding = false
  const end = (): void => {
    // A second signal does not wait for running replies.
    if (isEnding) return reloader.kill()
    isEnding = true
    ended.resolve(0)
  }
  process.on('SIGINT', end)
  process.on('SIGTERM', end)
  endWithNpm(end)
  void reloader.reload()
  // The page says that the agent is being loaded.
  if (options.open) openBrowser(url)
  // Meanwhile the other process imports ADK. If it needs the emulator, it reports the error.
  if (request.model !== 'gemini' && !hasCredentials(process.env))
    emulator.start().catch(() => undefined)
  const code = await ended.promise
  watcher.close()
  server.close()
  await reloader.close(DRAIN_MS)
  await emulator.close()
  return code
}
