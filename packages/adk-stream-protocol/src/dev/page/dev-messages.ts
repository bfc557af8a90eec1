import { z } from 'zod'

import type { Problem } from '../load/problem.ts'
import type { ToolReport } from '../agents/report-agent.ts'

/** A person that a page of `dev` can be used as. */
export const Person = z.object({ id: z.string(), name: z.string(), roles: z.array(z.string()) })
export type Person = z.infer<typeof Person>

/** What the process with the agents is asked to load. */
export const DevRequest = z.object({
  files: z.array(z.string()).min(1),
  exportName: z.string().optional(),
  envFiles: z.array(z.string()).optional(),
  policyFile: z.string().optional(),
  /** Default: the emulator if there is no key. */
  model: z.enum(['emulator', 'gemini']).optional(),
  liveModel: z.string(),
  /** A URL of PostgreSQL, or the path of a SQLite file. */
  database: z.string(),
  /** The folder of the artifacts. */
  artifacts: z.string(),
  /** The first one is the default. */
  people: z.array(Person).min(1),
})
export type DevRequest = z.infer<typeof DevRequest>

/** What the parent process sends. A socket comes with `connection`. */
export type ParentMessage =
  | { readonly type: 'load'; readonly request: DevRequest }
  | { readonly type: 'emulator'; readonly baseUrl: string }
  | { readonly type: 'connection' }
  /** The next version could not be loaded, or can be again. */
  | { readonly type: 'problem'; readonly problem: Problem | undefined }
  | { readonly type: 'close'; readonly drainMs: number }

/** What the process with the agents sends. */
export type ChildMessage =
  /** It has imported what does not depend on the files of the application. */
  | { readonly type: 'warm' }
  | { readonly type: 'emulator-needed' }
  | { readonly type: 'ready'; readonly loaded: LoadedAgents }
  | { readonly type: 'failed'; readonly problem: Problem; readonly files: readonly string[] }

/** The agents that a process has loaded. */
export interface LoadedAgents {
  readonly agents: readonly { readonly name: string; readonly file: string }[]
  readonly tools: readonly ToolReport[]
  readonly isEmulated: boolean
  /** The names of the models. */
  readonly models: readonly string[]
  readonly pendingApprovals: number
  /** What the developer should know, such as a version of ADK that is not tested. */
  readonly notices: readonly string[]
  /** The files of the application that were imported. */
  readonly files: readonly string[]
}
