import path from 'node:path'

import type { ModuleLoader } from './load-module.ts'

type ModuleExports = Readonly<Record<string, unknown>>

/** A module of the application: its file as messages name it, and its exports. */
export interface LoadedFile {
  readonly file: string
  readonly exports: ModuleExports
}

/** The modules of agents, and of what belongs to them. */
export interface AgentModules {
  readonly agents: readonly LoadedFile[]
  readonly policy: LoadedFile | undefined
  /** The export, if a file has several agents. */
  readonly exportName: string | undefined
}

/** Loads the files of agents. Throws a `LoadError`. */
export async function loadAgents(
  loader: Pick<ModuleLoader, 'load'>,
  request: {
    readonly files: readonly string[]
    readonly policyFile?: string | undefined
    readonly exportName?: string | undefined
    readonly cwd: string
  },
): Promise<AgentModules> {
  const { files, policyFile, exportName, cwd } = request
  const agents: LoadedFile[] = []
  for (const file of files) agents.push(await loadFile(loader, file, cwd))
  const policy = policyFile === undefined ? undefined : await loadFile(loader, policyFile, cwd)
  return { agents, policy, exportName }
}

export async function loadFile(
  loader: Pick<ModuleLoader, 'load'>,
  file: string,
  cwd: string,
): Promise<LoadedFile> {
  return { file: path.relative(cwd, file) || file, exports: await loader.load(file) }
}
