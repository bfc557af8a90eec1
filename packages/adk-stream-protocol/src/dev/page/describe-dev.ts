import path from 'node:path'

import type { DevRequest, LoadedAgents } from './dev-messages.ts'
import type { ToolReport } from '../agents/report-agent.ts'
import { OWN_VERSION } from '../load/versions.ts'

/** Describes the agents that `dev` serves, line by line. */
export function* describeStart(
  loaded: LoadedAgents,
  {
    url,
    request,
    cwd,
    watches,
  }: {
    readonly url: string
    readonly request: DevRequest
    readonly cwd: string
    readonly watches: boolean
  },
): Generator<string> {
  const { agents, tools, files, notices } = loaded
  const names = agents.map(({ name, file }) => `${file} → ${name}`).join(', ')
  yield `adk-stream-protocol ${OWN_VERSION} · ${names} (${summarize(tools)})`
  yield `  Page      ${url}`
  yield `  Model     ${describeModel(loaded)}`
  yield `  Data      ${describeData(request.database, cwd)}${describePending(loaded)}`
  if (request.people.length > 1)
    yield `  People    ${request.people.map(({ id, roles }) => [id, ...roles].join(' ')).join(', ')}`
  if (watches) yield `  Watching  ${count(files.length, 'file')}`
  for (const notice of notices) yield `  Notice    ${notice}`
}

/** Describes a version that has taken over. */
export function* describeReload(
  loaded: LoadedAgents,
  {
    before,
    ms,
    changed,
  }: {
    readonly before: LoadedAgents
    readonly ms: number
    /** Relative to the current folder. */
    readonly changed: readonly string[]
  },
): Generator<string> {
  const changes = [...describeChanges(before, loaded)]
  const text = changes.length === 0 ? '' : ` (${changes.join('; ')})`
  yield `✔ reloaded in ${(ms / 1000).toFixed(1)} s: ${changed.join(', ')}${text}`
}

function* describeChanges(before: LoadedAgents, after: LoadedAgents): Generator<string> {
  const old = new Map(before.tools.map((tool) => [tool.name, tool]))
  const names = new Set(after.tools.map(({ name }) => name))
  for (const tool of after.tools) {
    const known = old.get(tool.name)
    if (!known) yield `tool added: ${tool.name}, ${NEEDS[tool.need]}`
    else if (known.need !== tool.need) yield `${tool.name} ${NEEDS[tool.need]}`
  }
  for (const { name } of before.tools) if (!names.has(name)) yield `tool removed: ${name}`
  if (before.isEmulated !== after.isEmulated) yield describeModel(after)
}

const NEEDS: Readonly<Record<ToolReport['need'], string>> = {
  always: 'needs approval',
  sometimes: 'may need approval',
  never: 'runs without approval',
}

function summarize(tools: readonly ToolReport[]): string {
  const gated = tools.filter(({ need }) => need !== 'never').length
  return `${count(tools.length, 'tool')}, ${gated} ${gated === 1 ? 'needs' : 'need'} approval`
}

function describeModel({ isEmulated, models }: LoadedAgents): string {
  return isEmulated
    ? 'emulator (no key). Set GOOGLE_API_KEY in .env to talk to Gemini'
    : models.join(', ')
}

function describeData(database: string, cwd: string): string {
  if (!URL.canParse(database)) return path.relative(cwd, database)
  const { host, pathname } = new URL(database)
  return `PostgreSQL at ${host}${pathname}`
}

function describePending({ pendingApprovals }: LoadedAgents): string {
  return pendingApprovals === 0 ? '' : ` · ${count(pendingApprovals, 'pending approval')}`
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}
