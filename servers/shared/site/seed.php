<?php
// Writes the database of front.php into the file that is named: always the same one.
declare(strict_types=1);

if (!in_array('sqlite', PDO::getAvailableDrivers(), true)) {
    fwrite(STDERR, "PDO has no driver for SQLite\n");
    exit(1);
}
$words = explode(' ', 'river stone lamp window harbour paper orchard signal copper meadow winter bridge');
$phrase = function (int $seed, int $count) use ($words): string {
    $said = [];
    for ($n = 0; $n < $count; $n++) {
        $said[] = $words[($seed * 7 + $n * $n * 5 + $n) % count($words)];
    }
    return implode(' ', $said);
};

$db = new PDO('sqlite:' . $argv[1]);
$db->setAttribute(PDO::ATTR_ERRMODE, PDO::ERRMODE_EXCEPTION);
$db->beginTransaction();
$db->exec('CREATE TABLE author (id INTEGER PRIMARY KEY, name TEXT NOT NULL)');
$db->exec('CREATE TABLE article (id INTEGER PRIMARY KEY, author INTEGER NOT NULL, title TEXT NOT NULL, summary TEXT NOT NULL)');
$db->exec('CREATE TABLE comment (id INTEGER PRIMARY KEY, article INTEGER NOT NULL, said TEXT NOT NULL)');
$db->exec('CREATE INDEX comment_article ON comment (article)');
$author = $db->prepare('INSERT INTO author VALUES (?, ?)');
for ($id = 1; $id <= 20; $id++) {
    $author->execute([$id, ucwords($phrase($id, 2))]);
}
$article = $db->prepare('INSERT INTO article VALUES (?, ?, ?, ?)');
for ($id = 1; $id <= 200; $id++) {
    $article->execute([$id, $id % 20 + 1, ucfirst($phrase($id, 5)), $phrase($id + 3, 40) . '.']);
}
$comment = $db->prepare('INSERT INTO comment VALUES (?, ?, ?)');
for ($id = 1; $id <= 2000; $id++) {
    $comment->execute([$id, $id * $id % 200 + 1, $phrase($id, 12) . '.']);
}
$db->commit();
