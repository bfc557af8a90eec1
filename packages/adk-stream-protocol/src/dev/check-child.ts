import path from 'node:path'

import { z } from 'zod'

import { describeLoadError } from './load/describe-load-error.ts'
import { loadEnvironment } from './load/environment.ts'
import { LoadError } from './load/load-error.ts'
import { loadFile } from './load/load-agents.ts'
import { openLoader } from './load/load-module.ts'
import { hasCredentials, useEmulator } from './page/model-endpoint.ts'
import type { AgentReport } from './agents/report-agent.ts'
import { type AdkVersion, readAdkVersion } from './load/versions.ts'

/** What the process that loads an agent is asked, as its argument. */
export const CheckRequest = z.object({
  file: z.string(),
  exportName: z.string().optional(),
  envFiles: z.array(z.string()).optional(),
  policyFile: z.string().optional(),
  connect: z.boolean(),
})
export type CheckRequest = z.infer<typeof CheckRequest>

/** What it sends. */
export type CheckReply =
  | {
      readonly type: 'report'
      readonly exportName: string
      readonly adk: AdkVersion | undefined
      readonly report: AgentReport
    }
  | { readonly type: 'refused'; readonly code: string; readonly message: string }

/** Imports the modules that import ADK. */
function importReport() {
  return Promise.all([import('./agents/read-exports.ts'), import('./agents/report-agent.ts')])
}

async function check(given: CheckRequest): Promise<CheckReply> {
  const { file, exportName, envFiles, policyFile, connect } = given
  const cwd = process.cwd()
  const shown = path.relative(cwd, file) || file
  loadEnvironment(file, { cwd, envFiles })
  // ADK refuses to create a model without a key. Nothing listens there.
  if (!hasCredentials(process.env)) useEmulator(process.env, 'http://127.0.0.1:9')
  const loader = await openLoader(file, { cwd, preload: importReport })
  const exports = await loader.load(file)
  const policyModule =
    policyFile === undefined ? undefined : await loadFile(loader, policyFile, cwd)
  const adk = readAdkVersion(loader.adkCopies(), cwd)
  const [{ readExports, readPolicy }, { reportAgent }] = await importReport()
  const found = readExports(exports, { file: shown, exportName })
  const policy = policyModule && readPolicy(policyModule)
  const hasOwn = found.kind === 'bridge' || found.options.approvals !== undefined
  const settings = { ...found.settings, ...(policy && !hasOwn && { approvals: policy }) }
  const report = await reportAgent(settings, { connect })
  return { type: 'report', exportName: found.exportName, adk, report }
}

/** Ends the process also if the agent keeps timers or connections open. */
function reply(answer: CheckReply): void {
  process.send?.(answer, () => process.exit(0))
}

async function refuse(error: unknown): Promise<void> {
  const attempt = { entry: request.file, cwd: process.cwd(), messages: [] }
  const { code, message } =
    error instanceof LoadError ? error : await describeLoadError(error, attempt)
  reply({ type: 'refused', code, message })
}

const request = CheckRequest.parse(JSON.parse(process.argv[2] ?? '{}'))
process.on('uncaughtException', (error) => void refuse(error))
process.once('beforeExit', () => {
  const shown = path.relative(process.cwd(), request.file) || request.file
  const message = `${shown}: waits at its top level for something that never happens.`
  void refuse(new LoadError('ended', message))
})
check(request).then(reply, refuse)
