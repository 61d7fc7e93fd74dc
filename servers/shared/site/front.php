<?php
// The front page of a small site: some twenty queries, and templates that are read and filled in.
declare(strict_types=1);

/** A template with each {name} in it replaced. */
function fill(string $template, array $values): string
{
    return preg_replace_callback(
        '/\{(\w+)\}/',
        fn (array $found): string => $values[$found[1]],
        $template
    );
}

function part(string $name): string
{
    return file_get_contents(__DIR__ . "/../parts/$name.html");
}

$file = realpath(__DIR__ . '/../site.sqlite');
$db = new PDO("sqlite:$file", null, null, [PDO::SQLITE_ATTR_OPEN_FLAGS => PDO::SQLITE_OPEN_READONLY]);
$db->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION);

$newest = $db->query(
    'SELECT article.id, title, summary, name FROM article JOIN author ON author.id = author
     ORDER BY article.id DESC LIMIT 10'
)->fetchAll(PDO::FETCH_ASSOC);
$count = $db->prepare('SELECT COUNT(*) FROM comment WHERE article = ?');
$latest = $db->prepare('SELECT said FROM comment WHERE article = ? ORDER BY id DESC LIMIT 1');
$articles = '';
foreach ($newest as $row) {
    $count->execute([$row['id']]);
    $latest->execute([$row['id']]);
    $articles .= fill(part('article'), [
        'id' => (string) $row['id'],
        'title' => htmlspecialchars($row['title']),
        'summary' => htmlspecialchars($row['summary']),
        'author' => htmlspecialchars($row['name']),
        'comments' => (string) $count->fetchColumn(),
        'latest' => htmlspecialchars((string) $latest->fetchColumn()),
    ]);
}
$busiest = '';
$rows = $db->query(
    'SELECT name, COUNT(*) AS articles FROM author JOIN article ON author.id = author
     GROUP BY author.id ORDER BY articles DESC, name LIMIT 5'
);
foreach ($rows as $row) {
    $busiest .= fill(part('author'), [
        'name' => htmlspecialchars($row['name']),
        'articles' => (string) $row['articles'],
    ]);
}
echo fill(part('front'), [
    'articles' => $articles,
    'authors' => $busiest,
    'total' => (string) $db->query('SELECT COUNT(*) FROM article')->fetchColumn(),
]);
