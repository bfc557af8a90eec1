import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * The templates, each with the folders of `templates/` that it consists of. A file of a later folder replaces one of an earlier folder,
 * except `package.json`: its sections are merged.
 */
export const TEMPLATES: Readonly<Record<string, readonly string[]>> = {
  node: ['agent', 'page', 'node'],
  hono: ['agent', 'page', 'hono'],
  express: ['agent', 'page', 'express'],
  next: ['agent', 'next'],
}

export interface ProjectFile {
  /** The path in the project, with slashes. */
  readonly file: string
  readonly text: string
}

/** Returns the files of a project from a template. */
export function readTemplate(template: string, name: string): ProjectFile[] {
  const folders = TEMPLATES[template] ?? []
  const manifests = folders.map((folder) => path.join(FOLDER, folder, MANIFEST))
  const texts = new Map<string, string>()
  for (const folder of folders)
    for (const file of listFiles(path.join(FOLDER, folder)))
      texts.set(toPlace(file), readFileSync(path.join(FOLDER, folder, file), 'utf8'))
  texts.set(MANIFEST, createManifest(name, manifests))
  return Array.from(texts, ([file, text]) => ({ file, text }))
}

const FOLDER = fileURLToPath(new URL('../templates', import.meta.url))
const MANIFEST = 'package.json'

function listFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
    .toSorted()
}

/** npm does not publish files with the name `.gitignore`. */
function toPlace(file: string): string {
  return file === '_gitignore' ? '.gitignore' : file.split(path.sep).join('/')
}

type Section = Readonly<Record<string, string>>

/** The `package.json` of a folder. Only the first one has other members. */
interface PartOfManifest {
  readonly scripts?: Section
  readonly dependencies?: Section
  readonly devDependencies?: Section
}

/** Merges the manifests of the folders. Dependencies are in alphabetical order, as npm writes them. */
function createManifest(name: string, files: readonly string[]): string {
  // These files are part of this package.
  const parts = files.map((file) => JSON.parse(readFileSync(file, 'utf8')) as PartOfManifest)
  const merge = (key: 'scripts' | 'dependencies' | 'devDependencies'): Section =>
    Object.fromEntries(parts.flatMap((part) => Object.entries(part[key] ?? {})))
  const dependencies = sortKeys(merge('dependencies'))
  const devDependencies = sortKeys(merge('devDependencies'))
  const manifest = {
    // npm does not install a package into a project of the same name.
    name: name in dependencies || name in devDependencies ? `${name}-chat` : name,
    ...parts[0],
    scripts: merge('scripts'),
    dependencies,
    devDependencies,
  }
  return `${JSON.stringify(manifest, undefined, 2)}\n`
}

function sortKeys(section: Section): Section {
  return Object.fromEntries(
    Object.entries(section).toSorted(([one], [other]) => (one < other ? -1 : 1)),
  )
}
