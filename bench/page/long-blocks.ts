/** Replies that consist of one long block, by the prompt that asks for them. */
export const LONG_BLOCKS = {
  'a list of 300 items': lines(300, (n) => `- item ${n} with **bold** text`).join('\n'),
  'a table of 200 rows': [
    '| Name | Value | Note |',
    '|---|---|---|',
    ...lines(200, (n) => `| row ${n} | **${n}** | some words |`),
  ].join('\n'),
  'a paragraph of 27 kB': lines(660, (n) => `Sentence ${n} has **bold** words and \`code\`.`).join(
    ' ',
  ),
} as const

function lines(count: number, write: (n: number) => string): string[] {
  return Array.from({ length: count }, (_, index) => write(index + 1))
}
