import { existsSync } from 'node:fs'
import path from 'node:path'

import { LoadError } from './load-error.ts'

/** Returns the default files with environment variables: `.env` beside the agent and in the current folder. They may not exist. */
export function listEnvFiles(agentFile: string, cwd: string): string[] {
  const files = [path.dirname(agentFile), cwd].map((folder) => path.join(folder, '.env'))
  return [...new Set(files)]
}

/** Sets the environment variables of files. The first file wins: a variable that is set is not changed. Throws a `LoadError`. */
export function loadEnvironment(
  agentFile: string,
  { cwd, envFiles }: { readonly cwd: string; readonly envFiles: readonly string[] | undefined },
): void {
  const files = envFiles ?? listEnvFiles(agentFile, cwd).filter((each) => existsSync(each))
  for (const file of files) loadEnvFile(file, cwd)
}

function loadEnvFile(envFile: string, cwd: string): void {
  try {
    process.loadEnvFile(path.resolve(cwd, envFile))
  } catch (cause) {
    const reason = existsSync(path.resolve(cwd, envFile)) ? 'cannot be read' : 'does not exist'
    throw new LoadError('env-file', `The file ${envFile} with environment variables ${reason}.`, {
      cause,
    })
  }
}
