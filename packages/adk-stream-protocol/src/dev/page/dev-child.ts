import module from 'node:module'
import type { Socket } from 'node:net'
import path from 'node:path'
import { inspect } from 'node:util'

import { ProtocolError } from '../../protocol/errors.ts'
import { defer } from '../../shared/async.ts'
import type { Store } from '../../store/store.ts'
import type { ConnectionServer } from './connection-server.ts'
import { createConnectionServer } from './connection-server.ts'
import { describeLoadError } from '../load/describe-load-error.ts'
import { openArtifacts } from './dev-artifacts.ts'
import type { ChildMessage, DevRequest, ParentMessage } from './dev-messages.ts'
import { loadEnvironment } from '../load/environment.ts'
import { findStudio } from '../load/find-package.ts'
import { LoadError } from '../load/load-error.ts'
import { loadAgents } from '../load/load-agents.ts'
import type { ModuleLoader } from '../load/load-module.ts'
import { openLoader } from '../load/load-module.ts'
import { checkCredentials, hasCredentials, useEmulator } from './model-endpoint.ts'
import { choosingPerson } from './people.ts'
import type { Problem } from '../load/problem.ts'
import { toProblem } from '../load/problem.ts'
import { importStudio, readPrices } from './studio.ts'
import { readAdkVersion } from '../load/versions.ts'

/**
 * The process of `dev` with the agents. It imports ADK, waits for the request to load them, and then serves the connections that the
 * parent process accepts.
 */

/** How long the last responses may take when the process ends, in ms. */
const LAST_RESPONSES_MS = 2_000

// Node 22.1 and later keep the compiled code of ADK and its dependencies, 2,300 modules, for the next start, in a temporary folder.
const enableCompileCache: unknown = Reflect.get(module, 'enableCompileCache')
if (typeof enableCompileCache === 'function') enableCompileCache()

const [entry = ''] = process.argv.slice(2)
const cwd = process.cwd()
const emulator = defer<string>()

/** The loaded agents. */
interface Serving {
  readonly server: ConnectionServer
  readonly close: (drainMs: number) => Promise<void>
}

type State =
  | { readonly name: 'loading' }
  | ({ readonly name: 'serving' } & Serving)
  | { readonly name: 'ended' }

let state: State = { name: 'loading' }
let isEnding = false
/** Why the next version could not be loaded. */
let problem: Problem | undefined

function send(message: ChildMessage): void {
  // The parent process may have ended.
  if (process.connected) process.send?.(message)
}

/** Imports the modules that import ADK. */
async function importAgents() {
  const [{ openAgents }, adk, { describeAgents }, { openDatabase }] = await Promise.all([
    import('../agents/open-agents.ts'),
    import('@google/adk'),
    import('../../server/bridge-modules.ts'),
    import('../agents/open-store.ts'),
    importStudio(findStudio(entry)),
  ])
  // ADK logs every request. The terminal shows errors only.
  adk.setLogLevel(adk.LogLevel.ERROR)
  return { openAgents, describeAgents, openDatabase, adk }
}

const opening = openLoader(entry, { cwd, preload: importAgents })
opening.then(
  () => send({ type: 'warm' }),
  // Reported when the agents are loaded.
  () => undefined,
)

/** Sets the environment variables of the agents. Returns whether the emulator replies for their models. */
async function prepareEnvironment({ envFiles, model }: DevRequest): Promise<boolean> {
  loadEnvironment(entry, { cwd, envFiles })
  process.env['NODE_ENV'] ??= 'development'
  if (model === 'gemini') checkCredentials(process.env)
  const isEmulated = model === 'emulator' || !hasCredentials(process.env)
  if (isEmulated) {
    send({ type: 'emulator-needed' })
    useEmulator(process.env, await emulator.promise)
  }
  return isEmulated
}

/** Loads the agents and serves them. */
async function load(request: DevRequest): Promise<void> {
  const loader = await opening
  const isEmulated = await prepareEnvironment(request)
  // Otherwise a file that waits for something that never happens would not end the process.
  process.channel?.unref()
  const modules = await loadAgents(loader, { ...request, cwd })
  process.channel?.ref()
  const { openAgents, describeAgents, openDatabase, adk } = await importAgents()
  let store: Store | undefined
  const authenticate = choosingPerson(request.people)
  const opened = await openAgents(modules, async () => ({
    store: (store = await openDatabase(request.database)),
    authenticate,
    allowedHosts: [],
    liveModel: request.liveModel,
    // A reply survives that its page is loaded again.
    disconnectGraceMs: 30_000,
    elicitation: true,
    namePrincipal: (id) => request.people.find((person) => person.id === id)?.name,
    artifactService: openArtifacts(adk, request.artifacts),
    ...(process.env['NODE_ENV'] !== 'production' && {
      recordModelCalls: 'with-authentication' as const,
      developer: true,
    }),
    onError: reportError,
  }))
  const studio = await importStudio(findStudio(entry))
  const { bridge, settings, report } = opened
  const version = readAdkVersion(loader.adkCopies(), cwd)
  const models = [...new Set(report.agents.flatMap(({ model }) => model ?? []))]
  const info = {
    agents: describeAgents(settings),
    modes: settings.live ? ['sse', 'live'] : ['sse'],
    model: models.join(', '),
    ...(settings.live && { liveModel: nameModel(settings.live.model) ?? models[0] }),
    emulated: isEmulated,
    signIn: settings.signIn !== undefined,
    reloads: true,
    prices: readPrices(studio, process.env),
  }
  const listeners = studio.createStudioListener({
    bridge,
    authenticate: settings.authenticate,
    info: ({ principal }) => ({
      ...info,
      ...(opened.hasOwnBridge || settings.authenticate !== authenticate
        ? {}
        : {
            person: request.people.find(({ id }) => id === principal?.id),
            people: request.people.length > 1 ? request.people : [],
          }),
      problem,
    }),
  })
  const server = createConnectionServer(listeners)
  state = {
    name: 'serving',
    server,
    close: async (drainMs) => {
      server.drain()
      await bridge.close({ drainMs })
      await server.close(LAST_RESPONSES_MS)
      await store?.close()
    },
  }
  const pendingApprovals = await store?.approvals.countPending?.(settings.appName, 1_000)
  send({
    type: 'ready',
    loaded: {
      agents: opened.agents,
      tools: report.tools,
      isEmulated,
      models,
      pendingApprovals: pendingApprovals ?? 0,
      notices: [
        ...(version?.notice === undefined ? [] : [version.notice]),
        ...(opened.noLive === undefined ? [] : [`No voice: ${opened.noLive}`]),
      ],
      files: loader.files(),
    },
  })
}

function nameModel(model: unknown): string | undefined {
  if (typeof model === 'string') return model
  const name: unknown = typeof model === 'object' && model ? Reflect.get(model, 'model') : undefined
  return typeof name === 'string' ? name : undefined
}

/** Prints an error of the bridge. */
function reportError(error: unknown): void {
  // The client tries again, with the next version.
  const isRetried = error instanceof ProtocolError && error.code === 'unavailable'
  if (!isEnding || !isRetried) printError(error)
}

function printError(error: unknown): void {
  process.stderr.write(`${inspect(error)}\n`)
}

async function fail(error: unknown, loader?: ModuleLoader): Promise<void> {
  if (state.name !== 'loading') return printError(error)
  state = { name: 'ended' }
  const described =
    error instanceof LoadError
      ? error
      : await describeLoadError(error, { entry, cwd, messages: [] })
  const files = loader?.files() ?? []
  process.send?.(
    { type: 'failed', problem: toProblem(described, cwd), files } satisfies ChildMessage,
    () => process.exit(0),
  )
}

/** Lets running work finish and ends the process. A second call can shorten the time. */
async function end(drainMs: number): Promise<void> {
  isEnding = true
  if (state.name === 'serving') await state.close(drainMs)
  process.exit(0)
}

process.on('message', (message: ParentMessage, socket?: Socket) => {
  switch (message.type) {
    case 'load':
      load(message.request).catch(async (error: unknown) => fail(error, await opening))
      break
    case 'emulator':
      emulator.resolve(message.baseUrl)
      break
    case 'connection':
      if (state.name === 'serving' && socket) state.server.accept(socket)
      // The client has given up before the connection arrived here.
      else socket?.destroy()
      break
    case 'problem':
      ;({ problem } = message)
      break
    case 'close':
      void end(message.drainMs)
  }
})
// The parent process decides when this one ends. Ctrl+C reaches both.
process.on('SIGINT', () => undefined)
process.on('SIGTERM', () => undefined)
process.on('disconnect', () => void end(0))
process.on('uncaughtException', (error) => void fail(error))
process.once('beforeExit', () => {
  const shown = path.relative(cwd, entry) || entry
  void fail(
    new LoadError('ended', `${shown}: waits at its top level for something that never happens.`),
  )
})
