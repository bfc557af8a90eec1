import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'

import type { Page } from './pages.ts'
import { ROOT } from './pages.ts'

/** Pictures of the README that the browser tests take. */
const TAKEN_LATER = /^docs\/images\/(?:chat|approval|live|inspector)-(?:dark|light)\.png$/

/** Returns the relative links of a page to files and headings that do not exist. */
export function findBrokenLinks(page: Page): string[] {
  return readLinks(page.text)
    .filter((target) => !/^[a-z][\w+.-]*:/.test(target))
    .filter((target) => !targetExists(target, page))
    .map((target) => `${page.path}: ${target}`)
}

/** Returns the targets of links and pictures in a Markdown text, also those in HTML. Code is ignored. */
export function readLinks(text: string): string[] {
  const prose = withoutCode(text)
  const inline = prose.matchAll(/\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)/g)
  const references = prose.matchAll(/^\[[^\]]+\]:\s*(\S+)/gm)
  const html = prose.matchAll(/(?:href|src|srcset)="([^"\s]+)/g)
  return [...inline, ...references, ...html].map((match) => match[1] ?? '')
}

/** Returns the anchors that GitHub creates for the headings of a text. */
export function readAnchors(text: string): Set<string> {
  const anchors = new Set<string>()
  const headings = text.replaceAll(/^```[\s\S]*?^```$/gm, '').matchAll(/^#{1,6} +(.*?) *#*$/gm)
  for (const [, heading = ''] of headings) {
    const slug = slugify(heading)
    let anchor = slug
    for (let count = 1; anchors.has(anchor); count += 1) anchor = `${slug}-${count}`
    anchors.add(anchor)
  }
  for (const match of text.matchAll(/<a id="([^"]+)"/g)) anchors.add(match[1] ?? '')
  return anchors
}

function slugify(heading: string): string {
  return heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/<[^>]*>/g, '')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-')
}

function withoutCode(text: string): string {
  return text.replaceAll(/^```[\s\S]*?^```$/gm, '').replaceAll(/`[^`\n]*`/g, '')
}

function targetExists(target: string, page: Page): boolean {
  const [file = '', anchor] = decodeURI(target).split('#')
  const found =
    file === '' ? path.join(ROOT, page.path) : path.resolve(ROOT, path.dirname(page.path), file)
  if (!existsSync(found)) return TAKEN_LATER.test(path.relative(ROOT, found))
  if (anchor === undefined || !found.endsWith('.md')) return true
  return anchorsOf(found).has(anchor)
}

const known = new Map<string, Set<string>>()

/** Reads each file once: the reference of the API has thousands of links to itself. */
function anchorsOf(file: string): Set<string> {
  const anchors = known.get(file) ?? readAnchors(readFileSync(file, 'utf8'))
  known.set(file, anchors)
  return anchors
}
