import type { ChildProcess } from 'node:child_process'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'

import manifest from '../../package.json' with { type: 'json' }
import type { Block } from '../../test/docs/support/pages.ts'
import { readPages } from '../../test/docs/support/pages.ts'
import { packAll } from '../../test/pack/support/project.ts'

/** A running process of a project. */
export interface Running extends AsyncDisposable {
  readonly printed: () => string
  /** Resolves with the first match in the output. Rejects if the process ends before. */
  readonly prints: (pattern: RegExp) => Promise<RegExpExecArray>
}

/** A folder outside of the repository, in which the steps of a page of the docs run with the packed packages. */
export class Project implements AsyncDisposable {
  /** Where commands run and files are written. */
  folder: string
  readonly #base: string
  readonly #tarballs: Readonly<Record<string, string>>
  readonly #running: Running[] = []

  private constructor(folder: string, tarballs: Readonly<Record<string, string>>) {
    this.#base = folder
    this.folder = folder
    this.#tarballs = tarballs
  }

  static async open(name: string): Promise<Project> {
    const base = mkdtempSync(path.join(tmpdir(), `release-${name}-`))
    const packed = await packAll(base)
    const tarballs = packed.map((file) => [path.basename(file).replace(/-\d.*$/, ''), file])
    const folder = path.join(base, name)
    mkdirSync(folder)
    return new Project(folder, Object.fromEntries(tarballs) as Record<string, string>)
  }

  /** Enters a subfolder, as `cd` does. */
  enter(folder: string): void {
    this.folder = path.join(this.folder, folder)
  }

  /** Writes files with other ports. */
  write(
    files: readonly Pick<Block, 'file' | 'text'>[],
    ports: Readonly<Record<string, number>> = {},
  ): void {
    for (const { file, text } of files) {
      if (file !== undefined) this.writeFile(file, replacePorts(text, ports))
    }
  }

  writeFile(file: string, text: string): void {
    const place = path.join(this.folder, file)
    mkdirSync(path.dirname(place), { recursive: true })
    writeFileSync(place, text)
  }

  /** Runs commands of a page to their end. The names of the packages are replaced by the tarballs. */
  async run(commands: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
    const withTarballs = Object.entries(this.#tarballs).reduce(
      (text, [name, file]) => text.replaceAll(new RegExp(`(?<= )${name}(?= |$)`, 'gm'), file),
      commands,
    )
    const child = this.#spawn(`set -e\n${withTarballs}`, env)
    const output = listen(child)
    const [code] = (await once(child, 'exit')) as [number | null]
    if (code !== 0) throw new Error(`${commands} ended with ${code}:\n${output()}`)
    return output()
  }

  /** Creates a project as `npm create` does, with the packed packages and the versions of Vite that this repository uses, and enters it. */
  async create(template: string, folder: string): Promise<void> {
    const packed = this.#tarballs['create-adk-stream-protocol'] ?? ''
    await this.run(
      `npx --package=${packed} -- 'create-adk-stream-protocol' ${folder} --template ${template}`,
    )
    this.enter(folder)
    const { dependencies, devDependencies } = JSON.parse(
      readFileSync(path.join(this.folder, 'package.json'), 'utf8'),
    ) as Record<string, Record<string, string>>
    const settings = Object.entries(this.#tarballs).flatMap(([name, file]) =>
      Object.entries({ dependencies, devDependencies })
        .filter(([, section]) => section?.[name] !== undefined)
        .map(([section]) => `${section}.${name}=file:${file}`),
    )
    // Not the newest Vite: its binaries are not in every registry yet.
    const { rolldown, vite } = manifest.overrides
    if (devDependencies?.['vite'] !== undefined)
      settings.push(`overrides.rolldown=${rolldown}`, `devDependencies.vite=${vite}`)
    await this.run(`npm pkg set ${settings.join(' ')}\nnpm install`)
  }

  /** Starts a command that runs until the project is disposed. */
  start(command: string, env: Readonly<Record<string, string>> = {}): Running {
    const child = this.#spawn(command, env)
    const printed = listen(child)
    const exited = once(child, 'exit')
    const prints = async (pattern: RegExp): Promise<RegExpExecArray> => {
      const ended = exited.then(() => 'ended')
      for (;;) {
        const found = pattern.exec(printed())
        if (found) return found
        const more = Promise.race([
          once(child.stdout ?? child, 'data'),
          once(child.stderr ?? child, 'data'),
        ])
        if ((await Promise.race([more, ended])) === 'ended')
          throw new Error(`${command} ended without ${String(pattern)}:\n${printed()}`)
      }
    }
    const running: Running = {
      printed,
      prints,
      async [Symbol.asyncDispose]() {
        // The whole group: `npx` and package managers start processes of their own.
        if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
          process.kill(-child.pid, 'SIGKILL')
        await exited
      },
    }
    this.#running.push(running)
    return running
  }

  #spawn(command: string, env: Readonly<Record<string, string>>): ChildProcess {
    return spawn('bash', ['-c', command], {
      cwd: this.folder,
      detached: true,
      env: { ...process.env, NO_COLOR: '1', NODE_OPTIONS: '', npm_config_yes: 'true', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const running of this.#running) await running[Symbol.asyncDispose]()
    rmSync(path.dirname(this.#base), { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Returns the blocks of a page of the docs. */
export function blocksOf(file: string): readonly Block[] {
  const page = readPages().find((each) => each.path === `docs/${file}.md`)
  if (!page) throw new Error(`There is no page docs/${file}.md.`)
  return page.blocks
}

/** Returns the text of a page's n-th block of commands. */
export function commandsOf(blocks: readonly Block[], index: number): string {
  return blocks.filter(({ language }) => language === 'bash')[index]?.text ?? ''
}

/** Replaces the ports of a page, which other processes may use. */
function replacePorts(text: string, ports: Readonly<Record<string, number>>): string {
  return Object.entries(ports).reduce(
    (replaced, [port, free]) => replaced.replaceAll(port, String(free)),
    text,
  )
}

export async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  // A server that listens on a port has such an address.
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Prints a completed step. */
export function report(line: string): void {
  process.stdout.write(`${line}\n`)
}

function listen(child: ChildProcess): () => string {
  let printed = ''
  for (const output of [child.stdout, child.stderr])
    output?.on('data', (data: Buffer) => (printed += data.toString()))
  return () => printed
}
