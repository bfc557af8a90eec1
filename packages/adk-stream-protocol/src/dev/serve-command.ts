import { createServer } from 'node:http'
import path from 'node:path'
import { parseArgs } from 'node:util'

import { type CommandOutput, runCommand } from '../shared/command.ts'
import { defer } from '../shared/async.ts'
import { createDataFolder } from './data-folder.ts'
import { endWithNpm } from './end-with-parent.ts'
import { listen, readPort } from './listen.ts'
import { loadEnvironment } from './load/environment.ts'
import { findAllAgentFiles } from './load/find-agents.ts'
import { findStudio } from './load/find-package.ts'
import { loadAgents, loadFile } from './load/load-agents.ts'
import { openLoader } from './load/load-module.ts'
import { readAdkVersion } from './load/versions.ts'
import { importStudio, type StudioListenerOptions } from './page/studio.ts'
import type { OpenedAgents } from './agents/open-agents.ts'
import type { Bridge } from '../server/bridge.ts'

const USAGE = `Usage:
  adk-stream-protocol serve [path…] --auth <file> --origin <url> (--data <folder> | --database <url>) [options]

Serves the agents in files or folders, the current one by default, for pages of your own: the endpoints of the bridge. TypeScript needs
no build. Prints one JSON object per line: start and end, failed turns, approvals.

  --auth <file>           a file that exports authenticate: it returns the principal of a request
  --origin <url>          the origin of a page that may use the server, such as https://app.example; may be repeated
  --page                  also serves the page of adk-stream-protocol-studio, without its inspector. Its people need a cookie that
                          authenticate knows
  --data <folder>         the folder of chats and approvals
  --database <url>        a PostgreSQL database for them, which several servers can share. Default: the environment variable DATABASE_URL
  --port <number>         Default: the environment variable PORT, or 8000
  --host <address>        Default: 0.0.0.0
  --trusted-proxies <n>   the number of proxies in front of the server, or their addresses, separated by commas
  --policy <file>         a file that exports approvals: which calls need approval
  --live-model <name>     enables voice conversations with this model
  --env <file>            a file with environment variables; may be repeated. Default: .env beside the agent and in the current folder
  --export <name>         the export, if the file has several agents

A file that exports options or a bridge has its own authenticate, store and origins. SIGTERM and SIGINT end the server when running
replies and calls have ended, after at most 30 seconds. The exit code is then 0, and 2 if the server cannot start.`

const OPTIONS = {
  auth: { type: 'string' },
  origin: { type: 'string', multiple: true },
  page: { type: 'boolean' },
  data: { type: 'string' },
  database: { type: 'string' },
  port: { type: 'string' },
  host: { type: 'string' },
  'trusted-proxies': { type: 'string' },
  policy: { type: 'string' },
  'live-model': { type: 'string' },
  env: { type: 'string', multiple: true },
  export: { type: 'string' },
} as const

/** Imports the modules that import ADK. */
function importServer() {
  return Promise.all([
    import('./agents/open-agents.ts'),
    import('./agents/open-store.ts'),
    import('./agents/production.ts'),
    import('../server/sockets/socket-upgrader.ts'),
  ])
}

/** Runs `serve` until a signal ends the process. */
export async function runServeCommand(args: string[], output: CommandOutput): Promise<number> {
  const code = await run(args, output)
  // The agent may keep timers or connections open.
  return process.exit(code)
}

/** Returns the exit code if the server cannot start. */
function run(args: string[], output: CommandOutput): Promise<number> {
  return runCommand({ usage: USAGE, args }, output, async () => {
    const { positionals, values } = parseArgs({ args, allowPositionals: true, options: OPTIONS })
    const cwd = process.cwd()
    const [, ...places] = positionals
    const files = findAllAgentFiles(places, cwd)
    const [entry = ''] = files
    process.env['NODE_ENV'] ??= 'production'
    loadEnvironment(entry, { cwd, envFiles: values.env })
    const port = readPort(values.port ?? process.env['PORT'])
    const studioUrl = values.page ? findStudio(entry) : undefined
    const loader = await openLoader(entry, { cwd, preload: importServer })
    const policyFile = values.policy && path.resolve(cwd, values.policy)
    const exportName = values.export
    const modules = await loadAgents(loader, { files, policyFile, exportName, cwd })
    const auth = values.auth && (await loadFile(loader, path.resolve(cwd, values.auth), cwd))
    const [
      { openAgents },
      { openDatabase },
      { checkProduction, readAuthenticate },
      { refuseUnknownPath },
    ] = await importServer()
    readAdkVersion(loader.adkCopies(), cwd)
    const studio = studioUrl === undefined ? undefined : await importStudio(studioUrl)
    const database = values.data
      ? createDataFolder(values.data, { cwd })
      : (values.database ?? process.env['DATABASE_URL'])
    // A server that is refused has not started.
    const held: string[] = []
    let log = (line: string): void => void held.push(line)
    const opened = await openAgents(modules, async () => ({
      ...(database && { store: await openDatabase(database) }),
      ...(auth && { authenticate: readAuthenticate(auth) }),
      ...(values.origin && { allowedOrigins: values.origin }),
      ...(values['trusted-proxies'] && { trustedProxies: readProxies(values['trusted-proxies']) }),
      liveModel: values['live-model'],
      disconnectGraceMs: 30_000,
      log: (entryOfLog) => log(JSON.stringify(entryOfLog)),
    }))
    const { bridge, settings } = opened
    checkProduction(settings)
    log = (line) => void output.print(line)
    for (const line of held) log(line)
    const { request, upgrade } = studio
      ? studio.createStudioListener(describePage(opened))
      : {
          // The bridge handles its own errors.
          request: (...received: Parameters<Bridge['node']>) => void bridge.node(...received),
          upgrade: (...received: Parameters<Bridge['upgrade']>) =>
            void bridge
              .upgrade(...received)
              .then((isOpen) => isOpen || refuseUnknownPath(received[1])),
        }
    const server = createServer(request).on('upgrade', upgrade)
    const host = values.host ?? '0.0.0.0'
    const bound = await listen(server, { host, port: port ?? 8000 })
    const store = await settings.store
    bridge.closeOnSignals(server, ...(store ? [store] : []))
    endWithNpm(() => process.emit('SIGTERM'))
    await output.print(JSON.stringify({ level: 'info', message: 'listening', host, port: bound }))
    // A signal ends the process.
    return defer<number>().promise
  })
}

/** Describes the page of the agents for people: without what only developers may see. */
function describePage({ bridge, settings, report }: OpenedAgents): StudioListenerOptions {
  const models = [...new Set(report.agents.flatMap(({ model }) => model ?? []))]
  const agents = Array.from(settings.agents, ([name, root]) => ({
    name: name === '' ? root.name : name,
    ...('description' in root && { description: root.description }),
  }))
  const info = {
    agents,
    modes: settings.live ? ['sse', 'live'] : ['sse'],
    model: models.join(', '),
    emulated: false,
    signIn: settings.signIn !== undefined,
    inspector: false,
  }
  return {
    bridge,
    authenticate: settings.authenticate,
    // With `authenticate`, a page of another site has no credentials of its people.
    allowedHosts: settings.allowedHosts ?? 'any',
    // Strangers get the page, and nothing about the agents.
    info: ({ principal }) => (principal ? info : { ...info, agents: [], model: '' }),
  }
}

/** Reads a number of proxies, or their addresses. */
function readProxies(text: string): number | string[] {
  return /^\d+$/.test(text) ? Number(text) : text.split(',').map((each) => each.trim())
}
