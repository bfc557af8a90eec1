import { execFile } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'

import { builtStudioPage } from '../../support/built-page.ts'

const ROOT = path.join(import.meta.dirname, '../../..')
const run = promisify(execFile)

export interface Manifest {
  readonly name: string
  readonly version: string
  readonly exports: Readonly<Record<string, unknown>>
  readonly scripts?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

/** Packs the packages as `npm publish` would, unless `npm test` has packed them. Returns the tarballs. */
export async function packAll(folder: string): Promise<string[]> {
  const packedBefore = process.env['PACKED_PACKAGES']
  if (packedBefore !== undefined)
    return readdirSync(packedBefore).map((file) => path.join(packedBefore, file))
  await builtStudioPage()
  // One thread takes half of the CPU time.
  await run(process.execPath, [tsc(7), '-b', 'tsconfig.build.json', '--singleThreaded'], {
    cwd: ROOT,
  })
  const { stdout } = await run(
    'npm',
    ['pack', '--json', '--ignore-scripts', '--pack-destination', folder].concat(
      ['adk-stream-protocol', 'gemini-emulator', 'studio', 'create-adk-stream-protocol'].map(
        (name) => `./packages/${name}`,
      ),
    ),
    { cwd: ROOT },
  )
  const packed = JSON.parse(stdout) as { filename: string }[]
  return packed.map(({ filename }) => path.join(folder, filename))
}

/** Returns the names of the files in a tarball. */
export async function listFiles(tarball: string): Promise<string[]> {
  const { stdout } = await run('tar', ['-tzf', tarball])
  return stdout.split('\n').map((file) => file.replace(/^package\//, ''))
}

/**
 * Creates a project with the packed packages. It also has the packages that they declare, linked from the workspace, so an import
 * that no manifest declares fails.
 */
export async function installProject(
  folder: string,
  tarballs: readonly string[],
  aliases: Readonly<Record<string, string>> = {},
): Promise<Manifest[]> {
  const modules = path.join(folder, 'node_modules')
  const manifests: Manifest[] = []
  for (const tarball of tarballs) {
    const name = path.basename(tarball).replace(/-\d.*$/, '')
    mkdirSync(path.join(modules, name), { recursive: true })
    await run('tar', ['-xzf', tarball, '-C', path.join(modules, name), '--strip-components=1'])
    const manifest = readManifest(path.join(modules, name))
    manifests.push(manifest)
    for (const dependency of Object.keys({
      ...manifest.dependencies,
      ...manifest.peerDependencies,
    }))
      link(modules, dependency, find(name, aliases[dependency] ?? dependency))
  }
  link(modules, '@types/node', find('', '@types/node'))
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ type: 'module' }))
  cpSync(new URL('../project/main.ts', import.meta.url), path.join(folder, 'main.ts'))
  // Compiled only: a bundler resolves the style sheet.
  writeFileSync(path.join(folder, 'page.ts'), `import 'adk-stream-protocol/react/styles.css'\n`)
  writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: COMPILER }))
  return manifests
}

/** Links the packages that the manifest of a project declares: the packed ones from `installed`, the others from the workspace. */
export function linkDependencies(project: string, installed: string): void {
  const { dependencies, devDependencies } = readManifest(project)
  for (const name of Object.keys({ ...dependencies, ...devDependencies })) {
    const own = path.join(installed, name)
    const users = ['', 'adk-stream-protocol', 'studio'].map((user) => find(user, name))
    const target = existsSync(own) ? own : (users.find((place) => existsSync(place)) ?? name)
    link(path.join(project, 'node_modules'), name, target)
  }
}

/** Compiles the project into `out`. Returns the errors. */
export async function compile(folder: string, version: 6 | 7): Promise<string> {
  const threads = version === 7 ? ['--singleThreaded'] : []
  const args = [tsc(version), '-p', '.', '--pretty', 'false', '--outDir', 'out', ...threads]
  return run(process.execPath, args, { cwd: folder }).then(
    () => '',
    (error: { stdout: string }) => error.stdout,
  )
}

export async function runNode(folder: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [...args], { cwd: folder })
  return stdout
}

const COMPILER = {
  target: 'ES2023',
  lib: ['ES2023', 'DOM', 'DOM.Iterable', 'ESNext.Disposable'],
  module: 'NodeNext',
  types: ['node'],
  strict: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: true,
}

function tsc(version: 6 | 7): string {
  const modules = version === 7 ? 'node_modules' : 'docs/node_modules'
  return path.join(ROOT, modules, 'typescript/bin/tsc')
}

export function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')) as Manifest
}

/** Returns the folder of a dependency of a workspace package. */
function find(user: string, name: string): string {
  const own = path.join(ROOT, 'packages', user, 'node_modules', name)
  return existsSync(own) ? own : path.join(ROOT, 'node_modules', name)
}

function link(modules: string, name: string, target: string): void {
  const place = path.join(modules, name)
  if (existsSync(place)) return
  mkdirSync(path.dirname(place), { recursive: true })
  symlinkSync(target, place)
}
