import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'

export const ROOT = path.join(import.meta.dirname, '../../..')

/** A fenced block of a page. */
export interface Block {
  /** The page, relative to the root. */
  readonly page: string
  /** The line of the page on which the text starts, from 1. */
  readonly line: number
  readonly language: string
  readonly text: string
  /** The path of the file, if the first line of the block is a comment with only a path. */
  readonly file: string | undefined
  /** Code from the comment `<!-- given: … -->` before the block, which is compiled before it. */
  readonly given: string
}

export interface Page {
  /** Relative to the root, with slashes. */
  readonly path: string
  readonly text: string
  readonly blocks: readonly Block[]
}

const WRITTEN_FOR_USERS = /^(?:README\.md|docs\/(?!api\/).*|(?:packages|apps)\/[^/]+\/README\.md)$/
const NOT_OURS = new Set(['node_modules', 'dist', '.git', '.examples'])

/** Returns the pages whose examples must work. The API reference is not one of them. */
export function readPages(): Page[] {
  return readEveryPage().filter(({ path: file }) => WRITTEN_FOR_USERS.test(file))
}

/** Returns every Markdown file of the repository. */
export function readEveryPage(): Page[] {
  return findMarkdown('').toSorted().map(readPage)
}

function findMarkdown(folder: string): string[] {
  return readdirSync(path.join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const file = path.posix.join(folder, entry.name)
    if (entry.isDirectory()) return NOT_OURS.has(entry.name) ? [] : findMarkdown(file)
    return file.endsWith('.md') ? [file] : []
  })
}

function readPage(file: string): Page {
  const text = readFileSync(path.join(ROOT, file), 'utf8')
  return { path: file, text, blocks: readBlocks(file, text) }
}

/** Returns the fenced blocks of a Markdown text. */
export function readBlocks(page: string, text: string): Block[] {
  const fences = text.matchAll(/^```(\S*)[^\n]*\n([\s\S]*?)^```$/gm)
  return [...fences].map((match) => {
    const [, language = '', content = ''] = match
    const before = text.slice(0, match.index)
    return {
      page,
      line: before.split('\n').length + 1,
      language,
      text: content,
      file: /^(?:\/\/|#|<!--) ([\w./[\]-]+\.\w+)(?: -->)?$/m.exec(
        content.split('\n', 1)[0] ?? '',
      )?.[1],
      given: /<!-- given: ((?:(?!-->)[\s\S])*) -->\s*$/.exec(before)?.[1] ?? '',
    }
  })
}
